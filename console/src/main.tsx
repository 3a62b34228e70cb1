/** Entry of the console. */
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";
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

const root = document.getElementById("root");
// Evaluation of the modules and the first drawing are two short tasks, between which the browser handles input.
if (root !== null) setTimeout(() => createRoot(root).render(<App firstReads={firstReads} />));
