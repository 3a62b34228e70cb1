/** Texts of the fields that a form takes from the contract, by their name there. A field without a text shows its name and description. */
export interface FieldText {
  readonly name: string;
  /** Replaces the description of the contract, which is for readers of the API. */
  readonly hint?: string;
}

export const fields: Readonly<Record<string, FieldText>> = {
  Labels: { name: "Labels" },
  HostName: { name: "Host name", hint: "Name of the guest in its own system. By default derived from the name." },
  IsHighPerformance: {
    name: "High performance",
    hint: "Twice the CPU share while servers compete for the CPUs of the host.",
  },
  HDDType: { name: "Kind of disk", hint: "Is stored for programs that read it, and has no effect." },
  IsProtected: { name: "Protected against deletion and rebuild", hint: "Off by default." },
  isBackupActive: { name: "Daily backup", hint: "Off by default." },
  BackupPeriod: { name: "Backups are kept, days", hint: "By default 7." },
  DCLocation: { name: "Location", hint: "By default that of the selected network, or the first one." },
  NetworkBandwidth: { name: "Bandwidth, Mbit/s", hint: "Limit of the link to the network, in each direction." },
  NetworkIP: { name: "Address", hint: "A free address of the network. By default the lowest one." },
  WaitFor: {
    name: "Complete when",
    hint: "Power (the default): the server runs. Ssh: port 22 answers. Guest: the first boot has ended.",
  },
  IsDHCP: { name: "DHCP", hint: "Linked servers get their address by DHCP. On by default." },
  Mtu: { name: "MTU", hint: "Largest packet inside the tunnel, in bytes. By default 1400." },
  EncryptionType: { name: "Encryption", hint: "By default Aes256." },
  LocalNetwork: {
    name: "Networks on this side",
    hint: "Blocks of this network that the peer may reach. By default the whole network.",
  },
  LocalIdentificator: { name: "Identity of this side", hint: "By default the external address of the network." },
  IkeVersion: { name: "IKE version", hint: "By default 2. Version 1 uses main mode." },
  DhGroup: { name: "Diffie-Hellman group", hint: "By default 14." },
  Digest: { name: "Hash", hint: "By default Sha256, with TripleDes Sha1." },
  PerfectForwardSecrecy: { name: "Perfect forward secrecy", hint: "On by default." },
  KeepAlive: { name: "Keep-alive, seconds", hint: "0 is off. By default 25." },
  TechName: { name: "Technical name", hint: "By default the name, with hyphens in place of other characters." },
  RateLimit: { name: "Rate limit" },
  Requests: { name: "Requests", hint: "Requests that the token may send in this time." },
  Seconds: { name: "Time, seconds", hint: "Time after which the token may send as many requests again." },
  Secret: {
    name: "Secret",
    hint: "Key of the signature. By default a generated one, which is shown once after the webhook is created.",
  },
};
