/** Second entry of the console, of about one kilobyte: requests what the page will need before the large first chunk has arrived. */
import { pageAt } from "./app/pages.ts";

/** The main chunks use what this module requests. */
export { firstReads } from "./data/firstreads.ts";

// The router loads the page again if this fails, and shows the error.
pageAt(location.pathname.replace(/^\/console/, ""))?.().catch(() => undefined);
