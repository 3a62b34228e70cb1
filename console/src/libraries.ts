/**
 * Third entry of the console: what the first load uses of packages. It is a chunk of its own, so that the browser loads it beside the console's
 * own code and evaluates them one after the other.
 */
export {
  keepPreviousData,
  QueryClient,
  QueryClientProvider,
  QueryObserver,
  queryOptions,
  useMutation,
  useQuery,
} from "@tanstack/react-query";
export {
  createRootRoute,
  createRoute,
  createRouter,
  Link,
  lazyRouteComponent,
  Outlet,
  RouterProvider,
  useMatches,
  useMatchRoute,
  useNavigate,
  useParams,
  useSearch,
} from "@tanstack/react-router";
export { createPortal } from "react-dom";
export { createRoot } from "react-dom/client";
