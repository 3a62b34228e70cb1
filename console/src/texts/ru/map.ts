/** Texts of the map of networks in Russian. */
import type { Texts } from "../en.ts";
import { plural } from "../plural.ts";

const count = plural("ru");

export const map: Pick<Texts, "map"> = {
  map: {
    label: "Карта сетей",
    view: "Вид",
    views: { map: "Карта", list: "Список" },
    about: "Трафик последних секунд. Каждая часть ведёт на свою страницу.",
    listAbout: "Сети с туннелями, серверами и трафиком последних секунд.",
    outside: "Интернет",
    outsideAbout: "и другие сети",
    shared: "Общая сеть",
    kinds: { public: "Публичная", shared: "Общая", private: "Частная" },
    more: (n) => count(n, { one: `ещё ${n} сервер`, few: `ещё ${n} сервера`, other: `ещё ${n} серверов` }),
    moreNetworks: (n) =>
      count(n, {
        one: `Ещё ${n} сеть не показана здесь, она есть в списках.`,
        few: `Ещё ${n} сети не показаны здесь, они есть в списках.`,
        other: `Ещё ${n} сетей не показано здесь, они есть в списках.`,
      }),
    rate: (received, sent) => `↓ ${received}  ↑ ${sent}`,
    spoken: (received, sent) => `принимает ${received}, отправляет ${sent}`,
    tunnel: "Туннель",
    noServers: "Нет серверов",
    legend: {
      title: "Обозначения",
      network: "Публичная или общая сеть",
      private: "Частная сеть",
      server: "Сервер",
      tunnel: "Туннель к другой площадке",
      up: "Работает",
      down: "Не работает",
      off: "Выключено или ожидает",
      still: "Трафика нет",
      traffic: "Трафик: чем шире, тем больше",
      secure: "Туннель без трафика",
    },
  },
};
