/** The verbs of the connection itself, and the lines of the event stream. */
import { type Static, Type } from "typebox";
import { PowerEvent } from "./machinestatus.ts";
import { boolean, count, integer, line, nullable, oneOf, only, prose } from "./values.ts";
import { times, verbs } from "./verb.ts";

const requestId = () => Type.String({ pattern: "^[A-Za-z0-9-]{1,64}$" });

const Lines = Type.Array(prose(), { maxItems: 100 });

/** What the agent drives, for the start-up lines, `/readyz` and locations. */
export const Description = only({
  /** Tag of the installation, as in the names of devices. */
  tag: Type.String({ pattern: "^[a-z0-9]{1,8}$" }),
  machines: only({ kind: oneOf(["host", "sim"]), detail: prose(), lines: Lines }),
  router: only({
    kind: oneOf(["host", "sim"]),
    detail: prose(),
    lines: Lines,
    offers: only({ ipsec: boolean(), wireguard: boolean() }),
  }),
});
/** What the agent drives. */
export type Description = Static<typeof Description>;

/** Result of `hello`. */
export const Welcome = only({
  protocol: integer(1, 1_000_000),
  /** Release of the agent. */
  release: line(64),
  /** Changes at each start of the agent. */
  epoch: requestId(),
  /** The fence number that this control plane sends from now on. */
  fence: count(),
  description: Description,
});
/** Result of `hello`. */
export type Welcome = Static<typeof Welcome>;

/** The verbs of the connection. */
export const sessionVerbs = verbs({
  hello: {
    summary: "Compare versions, and get a fence number and the description of the host",
    description:
      "With `fence: null` the agent returns a number above all that it has seen, and refuses older ones from then on. A control plane that gets its numbers from a lease sends them.",
    args: ["protocol", "release", "fence"],
    body: only({ protocol: integer(1, 1_000_000), release: line(64), fence: nullable(count()) }),
    answer: Welcome,
    time: times.read,
  },
  cancel: {
    summary: "Abort the signal of a running request",
    args: ["request"],
    body: only({ request: requestId() }),
    answer: null,
    time: times.read,
  },
});

/** Path of the event stream: lines of JSON. Its query has `epoch` and `after`, the last event that the client has processed. */
export const eventsPath = "/events";

/** First line of the stream. `isComplete`: no event after `after` was lost. Events continue after `last`. */
export const StreamStart = only({ epoch: requestId(), last: count(), isComplete: boolean() });
/** The first line. */
export type StreamStart = Static<typeof StreamStart>;
/** Next lines: an event of the servers, or (without both) a sign of life. */
export const StreamEvent = Type.Union([
  only({ number: count(), power: PowerEvent }),
  only({ number: count(), device: line(64) }),
  only({ alive: Type.Literal(true) }),
]);
/** A line after the first one. */
export type StreamEvent = Static<typeof StreamEvent>;
