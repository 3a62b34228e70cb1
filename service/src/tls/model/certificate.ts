/** Reads certificates, and decides when one is renewed and when a failed order is repeated. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { KeyPair } from "../../drivers/authority/interface.ts";

/** What a certificate states. Times in ms since 1970. */
export interface CertificateInfo {
  readonly names: readonly string[];
  readonly notBefore: number;
  readonly notAfter: number;
}

/** Reads the first certificate of the chain. Throws if it is none, or if the key is not its key. */
export function readPair({ certificate, key }: KeyPair): CertificateInfo {
  const first = new X509Certificate(certificate);
  if (!first.checkPrivateKey(createPrivateKey(key))) throw new Error("the key is not that of the certificate");
  const names = (first.subjectAltName ?? "").split(",").map((part) => part.trim().replace(/^(?:DNS|IP Address):/, ""));
  return {
    names: names.filter((name) => name !== ""),
    notBefore: Date.parse(first.validFrom),
    notAfter: Date.parse(first.validTo),
  };
}

/** Returns whether the certificate contains all names. */
export const covers = ({ names }: CertificateInfo, wanted: readonly string[]): boolean =>
  wanted.every((name) => names.includes(name));

/** Returns when the certificate is renewed: when a third of its time is left, which is 30 of 90 days. */
export const renewalOf = ({ notBefore, notAfter }: CertificateInfo): number =>
  notAfter - Math.floor((notAfter - notBefore) / 3);

const minute = 60_000;
/** Pauses after failed orders. An authority accepts few failures per hour: Let's Encrypt five for each name. */
const pauses = [1, 15, 30, 60, 120, 240, 480, 720].map((minutes) => minutes * minute);

/** Returns the pause in ms after `failures` failed orders in a row. `random` in [0, 1): up to a tenth longer, so that hosts do not retry together. */
export function pauseAfter(failures: number, random: number): number {
  const pause = pauses[Math.min(Math.max(failures, 1), pauses.length) - 1] ?? minute;
  return Math.floor(pause * (1 + random / 10));
}

/** Milliseconds after which an order is repeated at the latest when the service starts again. */
export const restartPause = 15 * minute;
