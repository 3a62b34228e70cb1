/**
 * The records of a domain as a table that one edits in place. Edits are gathered, checked by the service as one types, and applied as one
 * changeset after a review.
 */
import type { Domain, RecordType } from "@brume/api/dns.ts";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ClipboardEvent, useCallback, useMemo, useRef, useState } from "react";
import { useData, useIsOfOneDomain, useMay, useMayOwnDomains, useOwnToken } from "../../data/data.tsx";
import { useDraft } from "../../data/draft.ts";
import { useAfterCheck, useDryRun } from "../../data/dryrun.ts";
import { errorsOf, errorText, withCapital } from "../../data/errortext.ts";
import {
  addRow,
  changesetOf,
  countEdits,
  type Edits,
  editableTypes,
  editRow,
  examples,
  isComplete,
  isEditable,
  noEdits,
  type Part,
  partOf,
  type Row,
  rowOf,
  sortRows,
  toggleRow,
  withEdits,
} from "../../data/record.ts";
import { withoutField } from "../../texts/detail.ts";
import { useFormat, useTexts } from "../../texts/texts.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/columns.ts";
import { DataTable } from "../../ui/datatable.tsx";
import { Empty, Note } from "../../ui/feedback.tsx";
import { useFieldInView } from "../../ui/field.tsx";
import { dropText } from "../../ui/filetext.tsx";
import { SearchFilter, SelectFilter } from "../../ui/filters.tsx";
import { InTurn, useLater } from "../../ui/later.ts";
import { HeadAction } from "../../ui/page.tsx";
import { PasteZone } from "./pastezone.tsx";
import { Review } from "./review.tsx";

/** Whether the row is not stored yet. */
const isNew = ({ id }: Row): boolean => id < 0;

/** Characters of a name that the bar shows. */
const mostShown = 40;
const shortName = ({ owner }: Row): string =>
  owner.length > mostShown ? `${owner.slice(0, mostShown)}…` : owner || "@";

export function Records({ domain }: { domain: Domain }) {
  const t = useTexts();
  const format = useFormat();
  const go = useNavigate({ from: "/dns/$id" });
  const { q = "", type = "" } = useSearch({ from: "/dns/$id" });
  const mayWrite = useMay("dns:write");
  const mayImport = useMayOwnDomains();
  const { client } = useData();
  const isOfOneDomain = useIsOfOneDomain();
  const token = useOwnToken(isOfOneDomain === true);
  // Empty: the rights of the token are not known yet, or it has none for these types.
  const newTypes = useMemo(
    () =>
      isOfOneDomain !== false && token === undefined
        ? []
        : editableTypes.filter((name) => token?.RecordTypes?.includes(name) ?? true),
    [isOfOneDomain, token],
  );
  const table = useRef<HTMLDivElement>(null);
  /** Id of the new row whose name gets the focus when it appears. */
  const opened = useRef<number | null>(null);
  const [edits, setEdits] = useDraft<Edits>(`domain:${domain.ID}`, noEdits);
  const [isReviewing, setReviewing] = useState(false);
  // Text of a zone file; null: none is being imported.
  const [pasted, setPasted] = useState<string | null>(null);
  const { ID: id, Name, LinkedRecords } = domain;

  const stored = useMemo(() => sortRows(LinkedRecords.map((record) => rowOf(record, { Name }))), [LinkedRecords, Name]);
  // What a filter searches, once for each row: a zone can have 50,000.
  const texts = useMemo(() => stored.map(({ owner, value }) => `${owner}\n${value}`.toLowerCase()), [stored]);
  const text = useLater(q.trim().toLowerCase());
  const rows = useMemo(() => {
    const fits = (row: Row, index: number): boolean =>
      (type === "" || row.type === type) && (text === "" || texts[index]?.includes(text) === true);
    return [...edits.added, ...stored.filter(fits).map((row) => withEdits(row, edits))];
  }, [stored, texts, edits, text, type]);
  const before = useMemo(() => new Map(stored.map((row) => [row.id, row])), [stored]);

  const count = countEdits(edits);
  const { changes, rows: changedRows } = useMemo(() => changesetOf(edits, before), [edits, before]);
  const areComplete = edits.added.every(isComplete);
  const check = useDryRun(count > 0 && areComplete ? changes : null, (Changes, signal) =>
    client.changeRecords({ path: { id }, body: { Changes } }, { dryRun: true, signal }),
  );
  const review = useAfterCheck(
    check,
    useCallback(() => setReviewing(count > 0), [count]),
  );
  // By row and part; an error of the whole row has no part. `first`: what the bar shows of them.
  const { errors, first } = useMemo(() => {
    const found = new Map<string, string>();
    const sentences: string[] = [];
    for (const [pointer, detail] of Object.entries(errorsOf(check.error, t))) {
      const [, index = "", field = ""] = /^\/Changes\/(\d+)(?:\/(\w+))?/.exec(pointer) ?? [];
      const id = changedRows[Number(index || -1)];
      const row = edits.added.find((one) => one.id === id) ?? before.get(id ?? 0);
      if (row === undefined) continue;
      const part = partOf(row.type, field);
      const sentence = part === undefined ? detail : withoutField(pointer, detail);
      found.set(`${row.id}/${part ?? ""}`, withCapital(sentence));
      sentences.push(`${shortName(row)} ${row.type}${part === undefined ? "" : `, ${t.records[part]}`}: ${sentence}`);
    }
    return { errors: found, first: sentences[0] ?? "" };
  }, [t, check.error, changedRows, edits.added, before]);
  useFieldInView(count === 0 ? "" : `${areComplete} ${first}`);
  // What no row shows.
  const failure = check.error === null || errors.size > 0 ? null : errorText(check.error, t);
  const add = (): void => {
    const [first] = newTypes;
    if (first === undefined) return;
    const next = addRow(edits, { type: first });
    opened.current = next.added[0]?.id ?? null;
    setEdits(next);
    // The new row is the first one, which a long table has not drawn.
    table.current?.querySelector(".table-scroll")?.scrollTo(0, 0);
  };

  const columns = useMemo<Column<Row>[]>(() => {
    const change = (row: Row, part: Partial<Row>): void =>
      setEdits((all) => editRow(all, before.get(row.id) ?? row, part));
    const focusNew = (element: HTMLInputElement | null): void => {
      if (element === null) return;
      opened.current = null;
      element.focus();
    };
    const input = (row: Row, part: Part & keyof typeof t.records, set: (text: string) => Partial<Row>, hint = "") => {
      if (!mayWrite || !isEditable(row.type)) return <span className="mono">{row[part]}</span>;
      const error = errors.get(`${row.id}/${part}`) ?? errors.get(`${row.id}/`);
      const note = `error-${row.id}-${part}`;
      return (
        <>
          <input
            className="input mono"
            ref={part === "owner" && row.id === opened.current ? focusNew : null}
            aria-label={`${t.records[part]}: ${row.owner} ${row.type}`}
            aria-invalid={error !== undefined || undefined}
            aria-describedby={error === undefined ? undefined : note}
            placeholder={hint}
            spellCheck={false}
            disabled={edits.removed.has(row.id)}
            value={row[part]}
            onChange={({ target }) => change(row, set(target.value))}
          />
          {error !== undefined && (
            <span className="field-note" id={note}>
              {error}
            </span>
          )}
        </>
      );
    };
    return [
      {
        id: "owner",
        name: t.records.owner,
        width: "minmax(120px, 1fr)",
        isMain: true,
        cell: (row) => input(row, "owner", (owner) => ({ owner }), row.type === "SRV" ? "_sip._tcp" : "@"),
      },
      {
        id: "type",
        name: t.records.type,
        width: "88px",
        isMain: true,
        cell: (row) =>
          isNew(row) ? (
            <select
              className="input"
              aria-label={t.records.type}
              value={row.type}
              onChange={({ target }) => change(row, { type: target.value as RecordType })}
            >
              {newTypes.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          ) : (
            <span className="tag">{row.type}</span>
          ),
      },
      {
        id: "ttl",
        name: t.records.ttl,
        width: "84px",
        isBelow: true,
        isNamed: true,
        cell: (row) => input(row, "ttl", (ttl) => ({ ttl: Number(ttl.replaceAll(/\D/g, "")) })),
      },
      {
        id: "value",
        name: t.records.value,
        width: "minmax(180px, 2fr)",
        isBelow: true,
        cell: (row) => input(row, "value", (value) => ({ value }), examples[row.type]),
      },
      ...(mayWrite
        ? [
            {
              id: "remove",
              name: t.common.delete,
              isNameHidden: true,
              width: "32px",
              isMain: true,
              isLoose: true,
              cell: (row: Row) => {
                const isRemoved = edits.removed.has(row.id);
                const name = `${row.owner} ${row.type}`;
                return (
                  <Button
                    kind="quiet"
                    size="small"
                    icon={isRemoved ? "undo" : "trash"}
                    aria-label={isRemoved ? t.records.restoreRow(name) : t.records.removeRow(name)}
                    onClick={() => setEdits((all) => toggleRow(all, row.id))}
                  />
                );
              },
            },
          ]
        : []),
    ];
  }, [t, mayWrite, before, edits.removed, errors, newTypes]);

  const types = useMemo(() => [...new Set(stored.map((row) => row.type))].sort(), [stored]);
  const search = (part: { q?: string; type?: string }): void => {
    void go({ search: (all) => ({ ...all, ...part }), replace: true });
  };
  const paste = (event: ClipboardEvent): void => {
    const lines = event.clipboardData.getData("text/plain");
    if (!mayImport || !lines.trim().includes("\n")) return;
    event.preventDefault();
    setPasted(lines);
  };
  return (
    <>
      <div ref={table} {...(mayImport && dropText(setPasted))} onPaste={paste}>
        {mayWrite && (
          <HeadAction>
            <Button kind="primary" icon="plus" disabled={newTypes.length === 0} onClick={add}>
              {t.records.add}
            </Button>
          </HeadAction>
        )}
        {token !== undefined && (
          <Note>
            <p>
              {t.records.restricted(
                t.access.recordsOf(Name, token.RecordPattern ?? "", token.RecordTypes?.join(", ") ?? ""),
              )}
            </p>
          </Note>
        )}
        <InTurn>
          <div className="filters">
            <SearchFilter label={t.records.filter} value={q} onChange={(next) => search({ q: next })} />
            <SelectFilter
              label={t.records.type}
              any={t.records.anyType}
              value={type}
              options={types.map((name) => [name, name])}
              onChange={(next) => search({ type: next })}
            />
            <span className="line">
              {mayImport && (
                <Button icon="file" title={t.records.pasteHint} onClick={() => setPasted("")}>
                  {t.records.paste}
                </Button>
              )}
              {stored.length > 0 && (
                <span className="muted number">
                  {t.table.of(format.number(rows.length - edits.added.length), format.number(stored.length))}
                </span>
              )}
            </span>
          </div>
          <DataTable
            label={t.records.tabs.records}
            columns={columns}
            rows={rows}
            idOf={(row) => row.id}
            nameOf={(row) => row.owner}
            rowClass={({ id: row }) =>
              row < 0 ? "new" : edits.removed.has(row) ? "removed" : edits.changed.has(row) ? "changed" : ""
            }
            isStacked={isNew}
            empty={
              <Empty
                icon="dns"
                title={
                  stored.length > 0 ? t.records.noMatch : isOfOneDomain ? t.records.emptyRestricted : t.records.empty
                }
              />
            }
          />
        </InTurn>
        {count > 0 && (
          <div className="bulk" role="toolbar" aria-label={t.records.pending(count)}>
            <strong className="number">{t.records.pending(count)}</strong>
            <span className="muted small break" role="status">
              {!areComplete && t.records.incomplete}
              {areComplete && errors.size > 0 && t.records.errors(errors.size, first)}
              {areComplete && failure !== null && (
                <>
                  <strong>{failure.title}</strong> {failure.cause} {failure.remedy}
                </>
              )}
            </span>
            <div className="line">
              <Button size="small" onClick={() => setEdits(noEdits)}>
                {t.records.discard}
              </Button>
              <Button
                size="small"
                kind="primary"
                isBusy={review.isWaiting}
                disabled={(check.error !== null && !check.isChecking) || !areComplete}
                onClick={review.start}
              >
                {t.records.review}
              </Button>
            </div>
          </div>
        )}
      </div>
      {isReviewing && (
        <Review
          domain={domain}
          changes={changes}
          onClose={() => setReviewing(false)}
          onDone={() => {
            setEdits(noEdits);
            setReviewing(false);
          }}
        />
      )}
      {pasted !== null && <PasteZone domain={domain} text={pasted} onClose={() => setPasted(null)} />}
    </>
  );
}
