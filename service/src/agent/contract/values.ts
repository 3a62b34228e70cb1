/**
 * Schemas that several verbs share. The agent checks every value with them, as hostile: objects have no other fields, texts have a length
 * and a pattern, lists have a maximum. A name can never be a path, an option of a program or a line of a rule.
 */
import { type TProperties, type TSchema, Type } from "typebox";

export { boolean, id, integer, list, nullable, optional, text } from "@brume/api/common.ts";

/** Schema of an object that has only these fields. */
export const only = <T extends TProperties>(fields: T) => Type.Object(fields, { additionalProperties: false });

/** Schema of one of these words, in this letter case. */
export const oneOf = <const W extends string>(words: readonly W[]) =>
  Type.Unsafe<W>({ type: "string", enum: [...words] });

/** Schema of a text without control characters. */
export const line = (maxLength: number) => Type.String({ maxLength, pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$" });
/** Schema of any text of at most this length; only in results. */
export const prose = (maxLength = 65_536) => Type.String({ maxLength });

/** Schema of a count or size: an integer from 0. */
export const count = () => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** Schema of a time in milliseconds since 1970. */
export const time = () => Type.Number({ minimum: 0 });
/** Schema of a number that the host measures. */
export const measure = () => Type.Number({ minimum: 0 });
/** Schema of a list in a result. */
export const many = <T extends TSchema>(items: T) => Type.Array(items, { maxItems: 1_000_000 });

/** Schema of the name of an image: the name of a folder, never a path. Names that end in `.part` belong to incomplete images. */
export const imageName = () => Type.String({ pattern: "^(?!.*\\.part$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" });
/** Schema of a locally administered unicast MAC address in lower case. */
export const mac = () => Type.String({ pattern: "^[0-9a-f][26ae](:[0-9a-f]{2}){5}$" });
/** Schema of an IPv4 address in a form that no program reads differently. */
export const ipv4 = () => Type.String({ pattern: `^${octets}$` });
/** Schema of an IPv4 or IPv6 address. */
export const address = () => Type.String({ pattern: `^(${octets}|${groups})$` });
/** Schema of a block of either family in CIDR notation. */
export const block = () => Type.String({ pattern: `^(${octets}/[0-9]{1,2}|${groups}/[0-9]{1,3})$` });
/** Schema of an address, a block, or a range of addresses. */
export const addresses = () =>
  Type.String({ pattern: `^(${octets}(/[0-9]{1,2}|-${octets})?|${groups}(/[0-9]{1,3}|-${groups})?)$` });
/** Schema of a host name or address of a peer. It begins with a letter, a digit or `_`, so that it is never an option. */
export const hostName = (maxLength = 253) =>
  Type.String({ maxLength, pattern: "^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?\\.?$" });

const octet = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
const octets = `${octet}(\\.${octet}){3}`;
/** The IPv6 parser of the driver checks the form; here only the characters and the length. */
const groups = "[0-9a-f]{0,4}:[0-9a-f:.]{1,44}";
