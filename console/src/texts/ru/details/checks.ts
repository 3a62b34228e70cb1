/** What the checks of the host have found, in Russian. */
import type { Table } from "../../translate.ts";

export const checks: Table = {
  sentences: [
    ["not checked yet", "ещё не проверено"],
    ["not watched", "не отслеживается"],
    ["sim: no guest runs", "имитация: гостевые системы не работают"],
    ["sim: no packet flows", "имитация: пакеты не идут"],
    ["sqlite does not respond", "sqlite не отвечает"],
    ["postgres does not respond", "postgres не отвечает"],
    ["{1} of {2} free for the data", "свободно для данных: {1} из {2}"],
    [
      "low: {1} of {2} free for the data, less than {3}. Free some space, or changes can no longer be stored.",
      "мало места: свободно {1} из {2}, меньше {3}. Освободите место, иначе изменения не сохранятся.",
    ],
  ],
  phrases: [],
};
