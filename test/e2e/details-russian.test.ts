/** Errors of real requests as the Russian console shows them: each detail and each detail of a field is translated. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "@brume/api/client.ts";
import { translateDetail } from "../../console/src/texts/ru/details.ts";
import { onSqlite } from "../support/harness.ts";

onSqlite("details in Russian", (harness) => {
  /** Returns the details of the error in Russian, without repeats. */
  async function russian(request: Promise<unknown>): Promise<string[]> {
    const error: unknown = await request.then(
      () => assert.fail("expected an error"),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof ApiError, String(error));
    const details = new Set([error.detail, ...error.errors.map(({ detail }) => detail)]);
    return [...details].map((detail) => translateDetail(detail)?.text ?? `English: ${detail}`);
  }

  test("of servers and networks", async () => {
    assert.deepEqual(await russian(harness.client.readServer({ path: { id: 77 } })), [
      "Сервера 77 нет в этом проекте.",
    ]);
    const { ID: id } = await harness.client.createServer({ body: { Name: "a", IsProtected: true } });
    assert.deepEqual(await russian(harness.client.deleteServer({ path: { id } })), [
      `Сервер ${id} защищён. Сначала установите IsProtected в false.`,
    ]);
    assert.deepEqual(await russian(harness.client.createServer({ body: { Name: "x".repeat(65), CPU: 900 } })), [
      "Полей с ошибками: 2.",
      "Name: длина в знаках — не больше 64; получено: 65.",
      "CPU: нужно число от 1 до 64; получено: 900.",
    ]);
    assert.deepEqual(await russian(harness.client.createServer({ body: { Name: "b", ImageID: "no such {1}" } })), [
      "Одно поле содержит ошибку.",
      'ImageID: нужен id или имя образа; получено: "no such {1}".',
    ]);
    assert.deepEqual(await russian(harness.client.createNetwork({ body: { Name: "n", CIDR: "10.0.0.1/24" } })), [
      "Одно поле содержит ошибку.",
      'CIDR: нужен блок от /16 до /29 без битов хоста внутри 10.0.0.0/8, 172.16.0.0/12 или 192.168.0.0/16, например 10.0.0.0/24; получено: "10.0.0.1/24".',
    ]);
  });

  test("of domains, records and zone files", async () => {
    const { ID: id, Name: name } = await harness.domain();
    const body = { DomainId: id, Name: "www", IP: "192.0.2.1" };
    await harness.client.createRecordA({ body });
    assert.deepEqual(await russian(harness.client.createRecordA({ body: { ...body, IP: "192.0.2.256" } })), [
      "Одно поле содержит ошибку.",
      'IP: нужен адрес IPv4, например 192.0.2.1, а не "192.0.2.256".',
    ]);
    const cname = { DomainId: id, MnemonicName: "www", Name: "other" };
    const [conflict = ""] = await russian(harness.client.createRecordCNAME({ body: cname }));
    assert.match(conflict, /^CNAME должна быть единственной записью своего имени, но есть запись \d+: A, имя www\./);
    const [, line = ""] = await russian(
      harness.client.importZone({ path: { id }, body: { ZoneFile: "www CNAME other\n", Mode: "Merge" } }),
    );
    assert.match(line, /^строка 1: CNAME должна быть единственной записью своего имени, но есть запись/);
    const zone = { ZoneFile: "a MX mail\nb A 10.0.0\n", Mode: "Merge" as const };
    assert.deepEqual(await russian(harness.client.importZone({ path: { id }, body: zone })), [
      "Строк файла зоны, которые нельзя импортировать: 2.",
      "строка 1: запись MX: слов в данных — 2, а не 1.",
      'строка 2: запись A: нужен адрес IPv4, например 192.0.2.1, а не "10.0.0".',
    ]);
    assert.deepEqual(await russian(harness.client.createDomain({ body: { Name: name } })), [
      `Домен ${name} уже есть в этом проекте, id: ${id}.`,
    ]);
  });
});
