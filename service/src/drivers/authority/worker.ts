/**
 * The thread that speaks ACME, and creates keys and certificates, with the libraries `acme-client` and `@peculiar/x509`. They need 30 MB and
 * are used a few times a year, so a thread loads them, does one work and ends.
 */
import { KeyObject, webcrypto } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509";
import acme from "acme-client";
import type { Challenge, KeyPair, Order } from "./interface.ts";
import type { Report, Work } from "./protocol.ts";

/** Milliseconds between two queries for the state of an order, the first and the longest, and their number. */
const pauses = { first: 500, last: 10_000, count: 30 };
/** Milliseconds for one request to the authority. */
const requestTime = 30_000;
/** Longest common name (RFC 5280, ub-common-name). */
const longestCommonName = 64;

const post = (report: Report): void => parentPort?.postMessage(report);

/** Sends the challenges and resolves when they are presented. */
const present = (challenges: readonly Challenge[]): Promise<void> =>
  new Promise((resolve) => {
    parentPort?.once("message", () => resolve());
    post({ kind: "challenges", challenges });
  });

function hasAccount(client: acme.Client): boolean {
  try {
    return client.getAccountUrl() !== "";
  } catch {
    return false;
  }
}

async function order({ directory, accountKey, contact, names, method }: Order): Promise<KeyPair> {
  acme.axios.defaults.timeout = requestTime;
  // The service repeats a failed order itself.
  Object.assign(acme.axios.defaults, { acmeSettings: { retryMaxAttempts: 2, retryDefaultDelay: 2 } });
  const client = new acme.Client({
    directoryUrl: directory,
    accountKey,
    backoffMin: pauses.first,
    backoffMax: pauses.last,
    backoffAttempts: pauses.count,
  });
  const account = { termsOfServiceAgreed: true, ...(contact !== null && { contact: [`mailto:${contact}`] }) };
  await client.createAccount(account).catch((error: unknown) => {
    // An account that exists is found, and then updated, which some authorities reject if there is nothing to update.
    if (!hasAccount(client)) throw error;
  });
  const created = await client.createOrder({ identifiers: names.map((value) => ({ type: "dns", value })) });
  const pending = (await client.getAuthorizations(created)).filter(({ status }) => status !== "valid");
  const offered = pending.map(({ identifier, challenges }) => {
    const challenge = challenges.find(({ type }) => type === method);
    if (challenge === undefined) throw new Error(`the authority does not offer ${method} for ${identifier.value}`);
    return { name: identifier.value, challenge };
  });
  const presented: Challenge[] = [];
  for (const { name, challenge } of offered) {
    const value = await client.getChallengeKeyAuthorization(challenge);
    presented.push({ method, name, token: challenge.token, value });
  }
  if (presented.length > 0) await present(presented);
  for (const { challenge } of offered) await client.completeChallenge(challenge);
  for (const { challenge } of offered) await client.waitForValidStatus(challenge);
  const common = names.find((name) => name.length <= longestCommonName);
  const key = await acme.crypto.createPrivateEcdsaKey("P-256");
  const [, request] = await acme.crypto.createCsr(
    { altNames: [...names], ...(common !== undefined && { commonName: common }) },
    key,
  );
  const finalized = await client.finalizeOrder(created, request);
  const certificate = await client.getCertificate(finalized);
  return { certificate, key: key.toString("utf8") };
}

async function selfSign(names: readonly string[], days: number): Promise<KeyPair> {
  const signingAlgorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(signingAlgorithm, true, ["sign", "verify"]);
  const now = Date.now();
  const minute = 60_000;
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      name: "CN=Brume temporary certificate",
      notBefore: new Date(now - 10 * minute),
      notAfter: new Date(now + days * 1440 * minute),
      signingAlgorithm,
      keys,
      extensions: [new SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns", value })))],
    },
    webcrypto,
  );
  const key = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" });
  return { certificate: certificate.toString("pem"), key: String(key) };
}

async function perform(work: Work): Promise<Report> {
  if (work.kind === "order") return { kind: "pair", pair: await order(work.order) };
  if (work.kind === "selfSign") return { kind: "pair", pair: await selfSign(work.names, work.days) };
  return { kind: "key", key: (await acme.crypto.createPrivateEcdsaKey("P-256")).toString("utf8") };
}

try {
  post(await perform(workerData as Work));
} catch (error) {
  // The library throws a TypeError if there is no response.
  const isSilent = error instanceof TypeError && /reading 'config'/.test(error.message);
  const reason = error instanceof Error ? error.message || error.name : String(error);
  post({ kind: "failed", reason: isSilent ? "the authority does not respond" : reason });
}
// Sockets that the library keeps open would keep the thread.
process.exit();
