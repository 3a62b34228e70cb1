/** Entry of the console. */
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
import { createAppRouter } from "./app/router.tsx";
import { firstReads } from "./first.ts";
import "./ui/base.css";
import "./ui/controls.css";
import "./ui/overlay.css";
import "./ui/layout.css";
import "./ui/panel.css";
import "./ui/data.css";
import "./ui/filters.css";
import "./ui/table.css";
import "./ui/network.css";
import "./ui/map.css";
import "./ui/forced.css";

/** Draws the console. The modules are evaluated, the router is made and the first frame is drawn in short tasks, between which the browser handles input. */
async function start(root: HTMLElement): Promise<void> {
  const nextTask = () => new Promise((resolve) => setTimeout(resolve));
  await nextTask();
  const router = createAppRouter();
  await nextTask();
  createRoot(root).render(<App firstReads={firstReads} router={router} />);
}

const root = document.getElementById("root");
if (root !== null) void start(root);
