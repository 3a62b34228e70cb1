/** Passwords of administrators: 16 letters and digits, each as likely as any other (95 bits). */

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const length = 16;
/** Bytes from here on would make the first letters likelier. */
const even = 256 - (256 % letters.length);

/** `random` gives so many random bytes. */
export function createPassword(random: (bytes: number) => Uint8Array): string {
  let password = "";
  while (password.length < length)
    for (const byte of random(length))
      if (byte < even && password.length < length) password += letters[byte % letters.length];
  return password;
}
