/** Second entry of the console, of about two kilobytes: requests what the page will need before the large first chunk has arrived. */
import { pageAt, readsAt } from "./app/pages.ts";
import { sendFirst } from "./data/firstreads.ts";

const path = location.pathname.replace(/^\/console/, "");
// The router loads the page again if this fails, and shows the error.
pageAt(path)?.().catch(() => undefined);
/** The main chunk uses what this module requests. */
export const firstReads = sendFirst(readsAt(path));
