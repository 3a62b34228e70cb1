/** Texts of the fields that a form takes from the contract, by their name there. A field without a text shows its name and description. */
export interface FieldText {
  readonly name: string;
  /** Replaces the description of the contract, which is for readers of the API. */
  readonly hint?: string;
  /** Shown at the end of the input. */
  readonly unit?: "Mbit/s" | "bytes" | "seconds";
  /** Terms of the field for values of the contract. */
  readonly values?: Readonly<Record<string, string>>;
}

/** Names of algorithms, which are the same in all languages. */
export const algorithms = {
  encryption: { Aes: "AES-128", Aes256: "AES-256", TripleDes: "3DES", AesGcm: "AES-128-GCM" },
  digest: { Sha1: "SHA-1", Sha256: "SHA-256", Sha384: "SHA-384", Sha512: "SHA-512" },
} as const;

/** Returns the Diffie-Hellman groups by their IANA number. `group`: the word in the language. */
export const groupNames = (group: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [
      [2, "MODP-1024"],
      [5, "MODP-1536"],
      [14, "MODP-2048"],
      [15, "MODP-3072"],
      [16, "MODP-4096"],
      [19, "ECP-256"],
      [20, "ECP-384"],
      [31, "Curve25519"],
    ].map(([id, name]) => [String(id), `${name} (${group} ${id})`]),
  );

export const fields: Readonly<Record<string, FieldText>> = {
  Labels: { name: "Labels" },
  HostName: { name: "Host name", hint: "Name of the guest in its own system. By default derived from the name." },
  IsHighPerformance: {
    name: "High performance",
    hint: "Twice the CPU share while servers compete for the CPUs of the host.",
  },
  IsProtected: { name: "Protected against deletion and rebuild", hint: "Off by default." },
  isBackupActive: { name: "Daily backup", hint: "Off by default." },
  BackupPeriod: { name: "Days that backups are kept", hint: "By default 7." },
  DCLocation: { name: "Location", hint: "By default that of the selected network, or the first one." },
  NetworkBandwidth: { name: "Bandwidth", unit: "Mbit/s", hint: "Limit of the link to the network, in each direction." },
  NetworkIP: { name: "Address", hint: "A free address of the network. By default the lowest one." },
  WaitFor: {
    name: "Complete when",
    hint: "By default, when the server runs.",
    values: { Power: "The server runs", Ssh: "SSH answers on port 22", Guest: "The first boot has ended" },
  },
  IsDHCP: { name: "DHCP", hint: "Linked servers get their address by DHCP. On by default." },
  Mtu: { name: "MTU", unit: "bytes", hint: "Largest packet inside the tunnel. By default 1400." },
  EncryptionType: { name: "Encryption", hint: "By default AES-256.", values: algorithms.encryption },
  LocalNetwork: {
    name: "Networks on this side",
    hint: "Blocks of this network that the peer may reach. By default the whole network.",
  },
  LocalIdentificator: { name: "Identity of this side", hint: "By default the external address of the network." },
  IkeVersion: { name: "IKE version", hint: "By default 2. Version 1 uses main mode." },
  DhGroup: {
    name: "Diffie-Hellman group",
    hint: "By default MODP-2048 (group 14).",
    values: groupNames("group"),
  },
  Digest: { name: "Hash", hint: "By default SHA-256, with 3DES SHA-1.", values: algorithms.digest },
  PerfectForwardSecrecy: { name: "Perfect forward secrecy", hint: "On by default." },
  KeepAlive: { name: "Keep-alive", unit: "seconds", hint: "0 is off. By default 25." },
  TechName: { name: "Technical name", hint: "By default the name, with hyphens in place of other characters." },
  RateLimit: { name: "Rate limit" },
  Requests: { name: "Requests", hint: "Requests that the token may send in this time." },
  Seconds: { name: "Time", unit: "seconds", hint: "Time after which the token may send as many requests again." },
  Secret: {
    name: "Secret",
    hint: "Key of the signature. By default a generated one, which is shown once after the webhook is created.",
  },
};
