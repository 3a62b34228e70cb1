/**
 * Renders far-end configuration for routers: MikroTik RouterOS 7, Cisco IOS XE, Fortinet FortiOS. If a router lacks a setting of the
 * tunnel, the text states it instead of configuring weaker encryption.
 */
import { isIPv4 } from "node:net";
import { formatAddresses, parseAddresses, prefixLength } from "../../../base/address.ts";
import type { IpsecTunnel, WireguardTunnel } from "../interface.ts";
import { life, lines, type NearEnd, placeholder } from "./peertext.ts";
import { groupOf } from "./proposals.ts";

const { sharedKey, privateKey } = placeholder;

const pairsOf = ({ peerSubnets, localSubnets }: IpsecTunnel): readonly (readonly [far: string, here: string])[] =>
  peerSubnets.flatMap((far) => localSubnets.map((here) => [far, here] as const));

const missing = (mark: string, router: string, what: string): string =>
  lines(`${mark} ${router} does not offer ${what}. Choose another setting for this tunnel.`);

/** Returns the netmask of a block, or its inverse, as dotted text. */
function maskOf(cidr: string, inverted: boolean): string {
  const wildcard = (1n << BigInt(32 - prefixLength(cidr))) - 1n;
  const value = inverted ? wildcard : 0xffff_ffffn - wildcard;
  return formatAddresses(4, { first: value, last: value });
}

const networkOf = (cidr: string): string => {
  const { first } = parseAddresses(cidr);
  return formatAddresses(4, { first, last: first });
};

/** Renders RouterOS 7 `/ip/ipsec`. Phase 1 supports no AES-GCM, phase 2 no SHA-384. */
export function mikrotik(tunnel: IpsecTunnel, near: NearEnd): string {
  const { id, encryption, digest, dhGroup, localIdentity, peerIdentity, perfectForwardSecrecy } = tunnel;
  if (encryption === "aes128gcm") return missing("#", "RouterOS", "AES-GCM for IKE");
  if (digest === "sha384") return missing("#", "RouterOS", "SHA-384 for ESP");
  if (dhGroup === 31) return missing("#", "RouterOS", "Diffie-Hellman group 31");
  const cipher = { aes128: "aes-128", aes256: "aes-256", "3des": "3des" }[encryption];
  const idOf = (identity: string): string =>
    isIPv4(identity) ? `address:${identity}` : identity.includes("@") ? `user-fqdn:${identity}` : `fqdn:${identity}`;
  const name = `brume-${id}`;
  return lines(
    `/ip/ipsec/profile add name=${name} enc-algorithm=${cipher} hash-algorithm=${digest} dh-group=${groupOf(dhGroup)} lifetime=${life.ike / 3600}h nat-traversal=yes dpd-interval=10s dpd-maximum-failures=3`,
    `/ip/ipsec/proposal add name=${name} enc-algorithms=${cipher === "3des" ? cipher : `${cipher}-cbc`} auth-algorithms=${digest} pfs-group=${perfectForwardSecrecy ? groupOf(dhGroup) : "none"} lifetime=${life.esp / 3600}h`,
    `/ip/ipsec/peer add name=${name} address=${near.address}/32 profile=${name} exchange-mode=${tunnel.ikeVersion === 2 ? "ike2" : "main"} passive=${tunnel.peer === null ? "no" : "yes"} send-initial-contact=yes`,
    `/ip/ipsec/identity add peer=${name} auth-method=pre-shared-key secret="${sharedKey}" my-id=${idOf(peerIdentity)} remote-id=${idOf(localIdentity)}`,
    pairsOf(tunnel).map(
      ([far, here]) =>
        `/ip/ipsec/policy add peer=${name} proposal=${name} tunnel=yes level=unique src-address=${far} dst-address=${here}`,
    ),
    "# Packets for the tunnel must not be translated:",
    pairsOf(tunnel).map(
      ([far, here]) =>
        `/ip/firewall/nat add chain=srcnat action=accept src-address=${far} dst-address=${here} place-before=0`,
    ),
  );
}

/** Renders RouterOS 7 `/interface/wireguard`. */
export function mikrotikWireguard(tunnel: WireguardTunnel, near: NearEnd): string {
  const name = `brume-${tunnel.id}`;
  const port = /:(\d+)$/.exec(tunnel.endpoint ?? "")?.[1];
  const secret = tunnel.presharedKey === null ? "" : ` preshared-key="${sharedKey}"`;
  const alive = tunnel.keepAlive > 0 ? ` persistent-keepalive=${tunnel.keepAlive}s` : "";
  return lines(
    `/interface/wireguard add name=${name} private-key="${privateKey}" mtu=${Math.min(tunnel.mtu, 1420)}${port === undefined ? "" : ` listen-port=${port}`}`,
    `/interface/wireguard/peers add interface=${name} public-key="${near.wireguard?.publicKey ?? ""}"${secret} endpoint-address=${near.address} endpoint-port=${near.wireguard?.listenPort ?? ""} allowed-address=${tunnel.localSubnets.join(",")}${alive}`,
    tunnel.localSubnets.map((block) => `/ip/route add dst-address=${block} gateway=${name}`),
  );
}

/** Renders IOS XE with a crypto map. The last line belongs to the interface towards the internet, whose name is unknown. */
export function cisco(tunnel: IpsecTunnel, near: NearEnd): string {
  const { id, encryption, digest, dhGroup, localIdentity, peerIdentity } = tunnel;
  const v2 = tunnel.ikeVersion === 2;
  if (dhGroup === 31) return missing("!", "IOS XE", "Diffie-Hellman group 31");
  if (!v2 && encryption === "aes128gcm") return missing("!", "IOS XE", "AES-GCM for IKEv1");
  const name = `brume-${id}`;
  const hash = digest === "sha1" ? "sha" : digest;
  const esp = {
    aes128: `esp-aes esp-${hash}-hmac`,
    aes256: `esp-aes 256 esp-${hash}-hmac`,
    "3des": `esp-3des esp-${hash}-hmac`,
    aes128gcm: "esp-gcm 128",
  }[encryption];
  const remote = (word: string, identity: string): string =>
    isIPv4(identity) ? `address ${identity}${word}` : identity.includes("@") ? `email ${identity}` : `fqdn ${identity}`;
  const ikev2 = [
    `crypto ikev2 proposal ${name}`,
    ` encryption ${{ aes128: "aes-cbc-128", aes256: "aes-cbc-256", "3des": "3des", aes128gcm: "aes-gcm-128" }[encryption]}`,
    encryption === "aes128gcm" ? ` prf ${digest}` : ` integrity ${digest}`,
    ` group ${dhGroup}`,
    `crypto ikev2 policy ${name}`,
    ` proposal ${name}`,
    `crypto ikev2 keyring ${name}`,
    ` peer ${name}`,
    `  address ${near.address}`,
    `  pre-shared-key ${sharedKey}`,
    `crypto ikev2 profile ${name}`,
    ` match identity remote ${remote(" 255.255.255.255", localIdentity)}`,
    ` identity local ${remote("", peerIdentity)}`,
    " authentication remote pre-share",
    " authentication local pre-share",
    ` keyring local ${name}`,
    ` lifetime ${life.ike}`,
    " dpd 10 3 periodic",
  ];
  const ikev1 = [
    `crypto isakmp policy ${id}`,
    ` encryption ${{ aes128: "aes", aes256: "aes 256", "3des": "3des", aes128gcm: "" }[encryption]}`,
    ` hash ${hash}`,
    " authentication pre-share",
    ` group ${dhGroup}`,
    ` lifetime ${life.ike}`,
    `crypto isakmp key ${sharedKey} address ${near.address}`,
    "crypto isakmp keepalive 10 3 periodic",
  ];
  return lines(
    v2 ? ikev2 : ikev1,
    `crypto ipsec transform-set ${name} ${esp}`,
    " mode tunnel",
    `ip access-list extended ${name}`,
    pairsOf(tunnel).map(
      ([far, here]) => ` permit ip ${networkOf(far)} ${maskOf(far, true)} ${networkOf(here)} ${maskOf(here, true)}`,
    ),
    `crypto map brume ${id} ipsec-isakmp`,
    ` set peer ${near.address}`,
    ` set transform-set ${name}`,
    tunnel.perfectForwardSecrecy ? [` set pfs group${dhGroup}`] : [],
    v2 ? [` set ikev2-profile ${name}`] : [],
    ` set security-association lifetime seconds ${life.esp}`,
    ` match address ${name}`,
    "! On the interface towards the internet:",
    "! crypto map brume",
  );
}

/** Renders FortiOS with a tunnel interface; `wan1` is a placeholder for the interface towards the internet. */
export function fortigate(tunnel: IpsecTunnel, near: NearEnd): string {
  const { id, encryption, digest, dhGroup, localIdentity, peerIdentity, perfectForwardSecrecy } = tunnel;
  const name = `brume-${id}`;
  const cipher = encryption === "aes128gcm" ? "aes128gcm" : `${encryption}-${digest}`;
  const ike = encryption === "aes128gcm" ? `aes128gcm-prf${digest}` : cipher;
  const type = isIPv4(peerIdentity) ? "address" : peerIdentity.includes("@") ? "user-fqdn" : "fqdn";
  const phase2 = pairsOf(tunnel).flatMap(([far, here], index) => [
    `    edit "${name}-${index + 1}"`,
    `        set phase1name "${name}"`,
    `        set proposal ${cipher}`,
    ...(perfectForwardSecrecy
      ? ["        set pfs enable", `        set dhgrp ${dhGroup}`]
      : ["        set pfs disable"]),
    `        set keylifeseconds ${life.esp}`,
    `        set auto-negotiate ${tunnel.peer === null ? "enable" : "disable"}`,
    `        set src-subnet ${networkOf(far)} ${maskOf(far, false)}`,
    `        set dst-subnet ${networkOf(here)} ${maskOf(here, false)}`,
    "    next",
  ]);
  return lines(
    "config vpn ipsec phase1-interface",
    `    edit "${name}"`,
    '        set interface "wan1"',
    `        set ike-version ${tunnel.ikeVersion}`,
    tunnel.ikeVersion === 1 ? ["        set mode main"] : [],
    `        set remote-gw ${near.address}`,
    "        set peertype one",
    `        set peerid "${localIdentity}"`,
    `        set localid-type ${type}`,
    `        set localid "${peerIdentity}"`,
    `        set psksecret "${sharedKey}"`,
    `        set proposal ${ike}`,
    `        set dhgrp ${dhGroup}`,
    `        set keylife ${life.ike}`,
    "        set nattraversal forced",
    "        set dpd on-idle",
    "        set dpd-retryinterval 10",
    "    next",
    "end",
    "config vpn ipsec phase2-interface",
    phase2,
    "end",
    "config router static",
    tunnel.localSubnets.flatMap((here) => [
      "    edit 0",
      `        set dst ${networkOf(here)} ${maskOf(here, false)}`,
      `        set device "${name}"`,
      "    next",
    ]),
    "end",
  );
}
