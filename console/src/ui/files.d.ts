declare module "*.css" {}
declare module "*.svg" {
  const url: string;
  export default url;
}

/** The parts of noVNC that the console uses; the package has no types. */
declare module "@novnc/novnc" {
  export default class RFB extends EventTarget {
    constructor(target: Element, url: string, options?: { readonly shared?: boolean });
    scaleViewport: boolean;
    background: string;
    focus(): void;
    disconnect(): void;
    sendCtrlAltDel(): void;
    sendKey(keysym: number, code: string | null, down?: boolean): void;
  }
}
