/** Keys that are made for whoever brings none. */

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const length = 32;

/** 32 letters and digits, each as likely as any other (190 bits), that every router takes without quotes. */
export function createSharedKey(random: (bytes: number) => Uint8Array): string {
  // Bytes beyond the last whole multiple of the alphabet would make its beginning likelier.
  const fair = 256 - (256 % letters.length);
  let key = "";
  while (key.length < length)
    for (const byte of random(length - key.length)) if (byte < fair) key += letters[byte % letters.length];
  return key;
}
