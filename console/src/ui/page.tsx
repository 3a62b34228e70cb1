/** The parts of a page: its head, panels, facts, meters, states and steps. */
import { createContext, type ReactNode, useContext, useLayoutEffect, useState } from "react";
import { createPortal } from "react-dom";
import { useTexts } from "../texts/texts.tsx";
import { Copy } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

/** The element at the end of the head of the page, and the function that sets it. */
const HeadSlot = createContext<readonly [HTMLElement | null, (slot: HTMLElement | null) => void]>([null, () => {}]);

/** Connects the head of a page with the main action of its parts. */
export function HeadSlotProvider({ children }: { children: ReactNode }) {
  return <HeadSlot value={useState<HTMLElement | null>(null)}>{children}</HeadSlot>;
}

/** Shows the main action of a part of a page, such as of a tab, where all pages have theirs: at the end of the head. */
export function HeadAction({ children }: { children: ReactNode }) {
  const [slot] = useContext(HeadSlot);
  return slot && createPortal(children, slot);
}

/** Head of a page: title, what belongs to it, and its actions, of which the main one is the last. */
export function PageHead({
  title,
  count,
  about,
  crumb,
  children,
}: {
  title: ReactNode;
  count?: ReactNode;
  about?: ReactNode;
  crumb?: ReactNode;
  children?: ReactNode;
}) {
  const [, setSlot] = useContext(HeadSlot);
  return (
    <div className="page-head">
      <div className="title">
        {crumb !== undefined && <div className="muted small">{crumb}</div>}
        <h1>
          {title}
          {count !== undefined && <span className="count-of number">{count}</span>}
        </h1>
        {about !== undefined && <div className="muted">{about}</div>}
      </div>
      <div className="line">
        {children}
        <div className="slot" ref={setSlot} />
      </div>
    </div>
  );
}

/** A framed part of a page. */
export function Panel({
  title,
  actions,
  kind,
  isFlush = false,
  children,
}: {
  title?: ReactNode;
  actions?: ReactNode;
  kind?: "danger";
  isFlush?: boolean;
  children: ReactNode;
}) {
  return (
    <section className={kind === undefined ? "panel" : `panel ${kind}`}>
      {title !== undefined && (
        <header>
          <h2>{title}</h2>
          <div className="line">{actions}</div>
        </header>
      )}
      {isFlush ? children : <div className="body">{children}</div>}
    </section>
  );
}

/** A fact: its name and value; `copy`: the text that its button copies. */
export interface Fact {
  readonly name: string;
  readonly value: ReactNode;
  readonly copy?: string | undefined;
}

export function Facts({ facts }: { facts: readonly (Fact | null | false)[] }) {
  return (
    <dl className="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact.name} style={{ display: "contents" }}>
              <dt>{fact.name}</dt>
              <dd>
                <span>{fact.value}</span>
                {fact.copy !== undefined && fact.copy !== "" && <Copy text={fact.copy} label={fact.name} />}
              </dd>
            </div>
          ),
      )}
    </dl>
  );
}

interface MeterProps {
  readonly label: string;
  readonly value: number;
  readonly limit: number;
  /** A large share is good. */
  readonly isProgress?: boolean;
}

/** Share from which the rest is scarce. */
const scarce = 0.8;

/** Returns whether little or nothing of the limit is left. */
export const isScarce = (value: number, limit: number): boolean => value >= limit * scarce;

/** Share of `value` in `limit` as a bar. */
export function Meter({ label, value, limit, isProgress = false }: MeterProps) {
  const share = limit === 0 ? 0 : Math.min(1, value / limit);
  const kind = isProgress || share < scarce ? "meter" : share < 0.95 ? "meter warn" : "meter bad";
  return (
    <div
      className={kind}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
    >
      {share > 0 && <div style={{ width: `${share * 100}%` }} />}
    </div>
  );
}

/** How a state looks: always an icon and a word, never a colour alone. */
export type Tone = "good" | "warn" | "bad" | "busy" | "quiet";

export const toneIcons: Readonly<Record<Tone, IconName>> = {
  good: "check",
  warn: "warn",
  bad: "error",
  busy: "busy",
  quiet: "off",
};

export function State({ tone, icon, children }: { tone: Tone; icon?: IconName; children: ReactNode }) {
  return (
    <span className={`state ${tone}`}>
      <Icon name={icon ?? toneIcons[tone]} size={14} spins={tone === "busy"} />
      {children}
    </span>
  );
}

/** What a fact or a cell shows that has no value. */
export function None() {
  const t = useTexts();
  return (
    <span className="muted">
      <span aria-hidden="true">–</span>
      <span className="hidden-text">{t.common.none}</span>
    </span>
  );
}

/** A step of long work. */
export interface StepView {
  readonly name: string;
  readonly state: "Pending" | "InProgress" | "Completed" | "Failed" | "Undone";
  readonly word: string;
  readonly detail: string;
  readonly time?: string | undefined;
}

const stepLooks = {
  Pending: ["off", "muted"],
  InProgress: ["busy", "busy"],
  Completed: ["check", "good"],
  Failed: ["error", "bad"],
  Undone: ["undo", "muted"],
} as const;

export function Steps({ steps }: { steps: readonly StepView[] }) {
  return (
    <ol className="steps">
      {steps.map(({ name, state, word, detail, time }) => {
        const [icon, look] = stepLooks[state];
        return (
          <li key={name}>
            <span className={look}>
              <Icon name={icon} size={14} spins={icon === "busy"} />
            </span>
            <span className="grow">
              {name} <span className="hidden-text">{word}</span>
              {detail !== "" && <span className="muted small"> {detail}</span>}
            </span>
            {time !== undefined && <span className="muted small number nowrap">{time}</span>}
          </li>
        );
      })}
    </ol>
  );
}

/** Removes the frame that `index.html` shows, before the browser shows the one that the script has drawn. */
export function useDrawn(): void {
  useLayoutEffect(() => document.querySelector(".placeholder")?.remove(), []);
}
