import assert from "node:assert/strict";
import { test } from "node:test";
import { withToast } from "./toastlist.ts";

const started = { text: "started", key: "action:1" };
const renamed = { text: "renamed", undo: { of: "server:1" } };
const labelled = { text: "labelled", undo: { of: "server:1" } };
const other = { text: "other", undo: { of: "server:2" } };
const many = { text: "many", undo: { of: "" } };

const textsOf = (toasts: readonly { readonly text: string; readonly key?: string; readonly undo?: { of: string } }[]) =>
  toasts.reduce<typeof toasts>(withToast, []).map(({ text }) => text);

test("a message takes the place of the one with its key", () => {
  assert.deepEqual(textsOf([started, other, { text: "ended", key: "action:1" }]), ["ended", "other"]);
});

test("only the last change of an object can be undone", () => {
  assert.deepEqual(textsOf([renamed, other, labelled]), ["other", "labelled"]);
  assert.deepEqual(textsOf([many, many, started]), ["many", "many", "started"]);
});

test("at most four messages are shown, the newest", () => {
  assert.deepEqual(textsOf("abcdef".split("").map((text) => ({ text }))), ["c", "d", "e", "f"]);
});
