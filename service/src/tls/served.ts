/** The certificate that the API serves now, from any source, and what `/readyz` shows of it. */
import type { KeyPair } from "../drivers/authority/interface.ts";
import { type CertificateInfo, readPair } from "./model/certificate.ts";

/** The certificate in force. */
export interface Served {
  pair(): KeyPair;
  info(): CertificateInfo;
  /** Replaces it and notifies the listeners. Throws if key and certificate do not match; then nothing changes. */
  replace(pair: KeyPair, isTemporary?: boolean): void;
  /** Sets what is wrong although the certificate is served; null: nothing. */
  setProblem(problem: string | null): void;
  /** Sets when it is renewed, in ms since 1970. */
  setRenewal(time: number | null): void;
  onChange(listener: (pair: KeyPair) => void): void;
  /** Returns the check for `/readyz`. `now` in ms since 1970. */
  check(now: number): { readonly Ok: boolean; readonly Detail: string };
}

const day = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** Serves `first`. `isTemporary`: no authority has signed it. Throws as `replace` does. */
export function createServed(first: KeyPair, isTemporary = false): Served {
  let state = { pair: first, info: readPair(first), isTemporary };
  let problem: string | null = null;
  let renewal: number | null = null;
  const listeners: ((pair: KeyPair) => void)[] = [];
  return {
    pair: () => state.pair,
    info: () => state.info,
    replace(pair, temporary = false) {
      state = { pair, info: readPair(pair), isTemporary: temporary };
      problem = null;
      for (const listener of listeners) listener(pair);
    },
    setProblem(text) {
      problem = text;
    },
    setRenewal(time) {
      renewal = time;
    },
    onChange: (listener) => void listeners.push(listener),
    check(now) {
      const { names, notAfter } = state.info;
      const isExpired = notAfter <= now;
      const what = state.isTemporary
        ? `temporary, signed by the service itself, for ${names.join(", ")}`
        : `${names.join(", ")}, ${isExpired ? "expired" : "valid until"} ${day(notAfter)}`;
      const renews = renewal === null || state.isTemporary || problem !== null ? [] : [`renewal from ${day(renewal)}`];
      const details = [what, ...renews, ...(problem === null ? [] : [problem])];
      return { Ok: !isExpired && !state.isTemporary, Detail: details.join("; ") };
    },
  };
}
