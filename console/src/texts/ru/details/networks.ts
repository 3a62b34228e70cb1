/** Details of errors of networks, links and firewalls in Russian. */
import type { Table } from "../../translate.ts";

export const networks: Table = {
  sentences: [
    ["Public network {1} does not exist in this project.", "Публичной сети {1} нет в этом проекте."],
    ["Private network {1} does not exist in this project.", "Частной сети {1} нет в этом проекте."],
    ["Public network {1} was deleted during the request.", "Публичная сеть {1} удалена во время запроса."],
    ["Public network {1} is being deleted and cannot be changed.", "Публичная сеть {1} удаляется, изменить её нельзя."],
    ["Network {1} is being deleted.", "Сеть {1} удаляется."],
    ["NetworkID: network {1} does not exist in this project.", "NetworkID: сети {1} нет в этом проекте."],
    ["NetworkId: network {1} does not exist in this project.", "NetworkId: сети {1} нет в этом проекте."],
    ["Network {1} is in {2}, server {3} in {4}.", "Площадка сети {1} — {2}, а сервера {3} — {4}."],
    ["Network {1} is in {2}, the server in {3}.", "Площадка сети {1} — {2}, а сервера — {3}."],
    ["Server {1} is already linked to network {2}.", "Сервер {1} уже подключён к сети {2}."],
    ["Server {1} is linked to network {2} already.", "Сервер {1} уже подключён к сети {2}."],
    [
      "Network {1} overlaps network {2}, to which server {3} is linked already.",
      "Сеть {1} пересекается с сетью {2}, к которой сервер {3} уже подключён.",
    ],
    ["Server {1} has no link.", "У сервера {1} нет подключения."],
    ["Server {1} has no link {2}.", "У сервера {1} нет подключения {2}."],
    ["Server {1} has no link to network {2}.", "Сервер {1} не подключён к сети {2}."],
    ["Server {1} has no link {2} to network {3}.", "У сервера {1} нет подключения {2} к сети {3}."],
    [
      "Addresses in network {1} ({2}): requested {3}, free {4}, limit {5}.",
      "Адреса сети {1} ({2}): запрошено {3}, свободно {4}, предел {5}.",
    ],
    ["{1} is already used by another server in network {2}.", "Адрес {1} уже занят другим сервером сети {2}."],
    ["{1} is the gateway of network {2}.", "Адрес {1} — шлюз сети {2}."],
    [
      "Network {1} is linked to server {2}. Remove these links first.",
      "К сети {1} подключены серверы: {2}. Сначала отключите их.",
    ],
    ["Every /24 of 172.16.0.0/12 is in use. Set CIDR.", "Все блоки /24 из 172.16.0.0/12 заняты. Укажите CIDR."],
    [
      "The public pools have no free /{1} with an edge address.",
      "В публичных пулах нет свободного блока /{1} с внешним адресом.",
    ],
    ["Network {1} has no unconfirmed firewall.", "В сети {1} нет межсетевого экрана, который ждёт подтверждения."],

    // Work of the host.
    ["The network could not be prepared.", "Не удалось подготовить сеть."],
    ["The change could not be applied.", "Не удалось применить изменение."],
    [
      "Generation {1} of network {2} could not be applied and is retried: {a?}",
      "Версию {1} сети {2} не удалось применить, попытка повторится: {a?}",
    ],
    [
      "Drift in network {1}: another program changed {2}. Brume repaired it.",
      "Сеть {1} на хосте изменила другая программа ({2}). Brume восстановил её.",
    ],
    ["Drift in network {1}: missing {2}. Repairing.", "В сети {1} на хосте не хватает: {2}. Она восстанавливается."],
    [
      "Drift in network {1}: the host has generation {2}, expected {3}. Repairing.",
      "Версия сети {1} на хосте — {2}, а нужна {3}. Она восстанавливается.",
    ],
    ["Network {1} is missing on the host. Repairing.", "Сети {1} нет на хосте. Она восстанавливается."],
  ],
  phrases: [
    ["must be an address from {1} to {2}", "нужен адрес от {1} до {2}"],
    ["must be an IPv4 address such as 10.0.0.1", "нужен адрес IPv4, например 10.0.0.1"],
    [
      "must be a block of /16 to /29 without host bits inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16, such as 10.0.0.0/24",
      "нужен блок от /16 до /29 без битов хоста внутри 10.0.0.0/8, 172.16.0.0/12 или 192.168.0.0/16, например 10.0.0.0/24",
    ],
    [
      "must be an address inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
      "нужен адрес внутри 10.0.0.0/8, 172.16.0.0/12 или 192.168.0.0/16",
    ],
    ["must be an address inside {1}, except its first and last", "нужен адрес внутри {1}, кроме первого и последнего"],
    [
      "must be a prefix length from 24 to 30 or 8, 16, 32, 64, 128 or 256 addresses",
      "нужна длина префикса от 24 до 30 или число адресов 8, 16, 32, 64, 128 или 256",
    ],

    // Firewall.
    ["must not combine {1} with other items", "{1} нельзя сочетать с другими элементами"],
    ["must be an address, a block, a range or a keyword", "нужен адрес, блок, диапазон или ключевое слово"],
    ["must be IPv4, because the network has no IPv6", "нужен IPv4: в сети нет IPv6"],
    ["must have the lower address of a range first", "в диапазоне первым должен быть меньший адрес"],
    ["must be any, a port or a range such as 8000-8100", "нужно any, порт или диапазон, например 8000-8100"],
    ["must have ports between 1 and 65535", "нужны порты от 1 до 65535"],
    ["must have the lower port of a range first", "в диапазоне первым должен быть меньший порт"],
    [
      "Both addresses are in the network: such traffic does not cross its router and is not filtered.",
      "Оба адреса в этой сети: такой трафик не проходит через её маршрутизатор и не фильтруется.",
    ],
    [
      "{1} is the router of the network: rules do not filter the packets that it sends.",
      "{1} — маршрутизатор сети: правила не фильтруют пакеты, которые он отправляет.",
    ],
    [
      "{1} is the router of the network, which rules do not filter: from the network it accepts only {2}.",
      "{1} — маршрутизатор сети, правила его не фильтруют: из сети он принимает только {2}.",
    ],
    [
      "{1} is the router of the network, which rules do not filter: from outside it accepts only {2}.",
      "{1} — маршрутизатор сети, правила его не фильтруют: снаружи он принимает только {2}.",
    ],
    [
      "{1} is closed to servers: such addresses are the host's or its provider's, and no rule opens them.",
      "{1} закрыт для серверов: такие адреса принадлежат хосту или его провайдеру, и никакое правило их не открывает.",
    ],
    ["must be any with the protocol {1}", "с протоколом {1} допустимо только any"],
    ["must be one address such as 10.64.0.10", "нужен один адрес, например 10.64.0.10"],
    ["must be of the same family as Source", "нужна та же версия IP, что и у Source"],
    ["must be absent with the protocol Icmp", "с протоколом Icmp поле нужно убрать"],
    ["is required with the protocol {1}", "обязательное поле с протоколом {1}"],
  ],
};
