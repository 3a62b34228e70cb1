/**
 * Makes the first formatters of the browser in a worker. The first ones read the data of all languages, for 20 ms and more, and all threads of the
 * page share it: later ones cost nothing. In the page this script starts itself as the worker.
 */
if ("document" in globalThis) {
  const worker = new Worker(import.meta.url, { type: "module" });
  // Without a worker the page reads the data itself, with its first formatter.
  worker.addEventListener("error", (event) => event.preventDefault());
} else {
  new Intl.NumberFormat().format(0);
  new Intl.RelativeTimeFormat().format(0, "day");
  new Intl.DateTimeFormat().format(0);
  close();
}
