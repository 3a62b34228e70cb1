/** Entry for development: the page reloads itself after each build, and when the service is back. */
import "./main.tsx";

const tagOf = async (): Promise<string | null> => {
  const response = await fetch("/console/", { method: "HEAD", headers: { Accept: "text/html" } }).catch(() => null);
  return response?.headers.get("etag") ?? null;
};

const first = await tagOf();
async function check(): Promise<void> {
  const tag = await tagOf();
  if (tag !== null && tag !== first) location.reload();
}
setInterval(() => void check(), 500);
