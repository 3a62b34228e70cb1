/**
 * The contract of the host agent: all verbs, by driver interface and method. The path of a verb is `/INTERFACE/METHOD`. The types below
 * prove that every method of a driver interface which is a request has its verb, with the same arguments and the same result.
 */
import type { Contents, Uploads } from "../../drivers/content/interface.ts";
import type { Consoles, Images, Machines } from "../../drivers/machine/interface.ts";
import type { Port, PortStatus, Router } from "../../drivers/router/interface.ts";
import { contentVerbs } from "./contents.ts";
import { consoleVerbs, imageVerbs } from "./images.ts";
import { machineVerbs } from "./machines.ts";
import { type PortRow, routerVerbs } from "./router.ts";
import type { PortStatusRow } from "./routerstatus.ts";
import { sessionVerbs } from "./session.ts";
import { uploadVerbs } from "./uploads.ts";
import type { Arguments, Result, Sent, Verb } from "./verb.ts";

/** All verbs. */
export const contract = {
  session: sessionVerbs,
  machines: machineVerbs,
  images: imageVerbs,
  consoles: consoleVerbs,
  router: routerVerbs,
  contents: contentVerbs,
  uploads: uploadVerbs,
} as const satisfies Readonly<Record<string, Readonly<Record<string, Verb>>>>;

/** Type of the contract. */
export type Contract = typeof contract;

/** The driver interfaces behind the agent. */
export interface Drivers {
  readonly machines: Machines;
  readonly images: Images;
  readonly consoles: Consoles;
  readonly router: Router;
  readonly contents: Contents;
  readonly uploads: Uploads;
}

/** Methods that are no requests: subscriptions, the name of a device, the end of the driver. */
type Local = "onPower" | "onDevice" | "deviceOf" | "close";

type Scalar = string | number | boolean | null | undefined;
/** An argument as it is sent (`codec.ts`): bytes are base64, a port is a row. */
type Plain<T> = T extends Uint8Array
  ? { readonly base64: string }
  : T extends Port
    ? Sent<PortRow>
    : T extends Scalar
      ? T
      : { readonly [Key in keyof T]: Plain<T[Key]> };
/** A result as the caller gets it: the row of a port is an object. */
type Received<T> = T extends PortStatusRow
  ? PortStatus
  : T extends Scalar
    ? T
    : { readonly [Key in keyof T]: Received<T[Key]> };

/** The positions of the arguments of `All` that the verb does not accept; `never`: it accepts all. */
type Refused<Args extends readonly unknown[], All extends readonly unknown[]> = {
  [At in keyof Args]: At extends keyof All ? (Plain<All[At]> extends Args[At] ? never : At) : At;
}[number];

/** The names of methods whose verb is missing or has other types; `never`: all agree. */
type Different<Interface, Table> = {
  [Name in Exclude<keyof Interface, Local>]: Interface[Name] extends (...args: infer All) => Promise<infer Value>
    ? Name extends keyof Table
      ? Table[Name] extends Verb
        ? [Refused<Arguments<Table[Name]>, Required<All>>] extends [never]
          ? Table[Name] extends { readonly stream: "both" | "read" | "write" } | { readonly answer: null }
            ? never
            : Received<Result<Table[Name]>> extends Value
              ? never
              : Name
          : Name
        : Name
      : Name
    : Name;
}[Exclude<keyof Interface, Local>];

/** Fails to compile with the names of the methods that differ. */
type Agree<Names extends never> = Names;
/** The proof, by driver interface. */
export interface Agreement {
  readonly machines: Agree<Different<Machines, Contract["machines"]>>;
  readonly images: Agree<Different<Images, Contract["images"]>>;
  readonly consoles: Agree<Different<Consoles, Contract["consoles"]>>;
  readonly router: Agree<Different<Router, Contract["router"]>>;
  readonly contents: Agree<Different<Contents, Contract["contents"]>>;
  readonly uploads: Agree<Different<Uploads, Contract["uploads"]>>;
}
