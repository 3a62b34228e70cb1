/** Details of errors of domains, records, zone files and claims in Russian. */
import type { Table } from "../../translate.ts";

export const zones: Table = {
  sentences: [
    ["There is no domain {1} in this project.", "Домена {1} нет в этом проекте."],
    ["There is no record {1} in this project.", "Записи {1} нет в этом проекте."],
    ["There is no record {1} in domain {2}.", "Записи {1} нет в домене {2}."],
    ["There is no claim {1} in this project.", "Заявки {1} нет в этом проекте."],
    ["There is no withdrawn domain {1} in this project.", "Изъятого домена {1} нет в этом проекте."],
    ["There is no reservation {1}.", "Зарезервированного имени {1} нет."],
    ["The domain {1} already exists in this project, with the id {2}.", "Домен {1} уже есть в этом проекте, id: {2}."],
    ["Reservation {1} has the name {2}.", "Имя {2} уже зарезервировано: {1}."],
    ["Domain {1} has no version with serial {2}.", "У домена {1} нет версии с номером {2}."],
    ["Record {1} belongs to domain {2}.", "Запись {1} принадлежит домену {2}."],
    ["Record {1} is of type {2}, not {3}.", "Тип записи {1} — {2}, а не {3}."],
    ["Record {1} occurs more than once in the changeset.", "Запись {1} встречается в изменениях больше одного раза."],
    [
      "{1} is, contains or is inside a domain of another project. Its owner may claim it: POST /dns/claim.",
      "{1} совпадает с доменом другого проекта, содержит его или находится внутри него. Владелец имени может подать заявку: POST /dns/claim.",
    ],
    [
      "{1} is a public suffix: it contains domains of many owners. The operator may reserve it for a project.",
      "{1} — публичный суффикс: в нём домены многих владельцев. Оператор может зарезервировать его для проекта.",
    ],
    ["The operator reserved {1}.", "Оператор зарезервировал {1}."],
    [
      "Names with the label {1} are reserved for the proof of claims.",
      "Имена с меткой {1} зарезервированы для подтверждения заявок.",
    ],
    [
      "The project has {1} pending claims, which is the maximum. Wait for one to end, or delete one.",
      "Открытых заявок проекта: {1}, это предел. Дождитесь окончания одной из них или удалите её.",
    ],

    // Results of claims.
    ["No resolver is configured to look the record up.", "Резолвер для поиска записи не настроен."],
    ["The record has not been looked up yet.", "Запись ещё не искали."],
    ["The record was found.", "Запись найдена."],
    ["The operator reserved the name for this project.", "Оператор зарезервировал имя для этого проекта."],
    ["{1} has no TXT record.", "У {1} нет записи TXT."],
    ["{1} has {2} other TXT records.", "У {1} есть только другие записи TXT: {2}."],
    ["{1} could not be looked up ({a?}).", "Найти {1} не удалось ({a?})."],
    ["More than {1} domains are below the name.", "Ниже этого имени больше {1} доменов."],

    // Conflicts of records.
    ["Record {1} of domain {2} has the same type, name and data.", "У записи {1} домена {2} те же тип, имя и данные."],
    [
      "Another record of domain {1} has the same type, name and data.",
      "У другой записи домена {1} те же тип, имя и данные.",
    ],
    [
      "The {1} records at {2} do not fit into one DNS answer: together they may have at most {3} bytes.",
      "Записи {1} с именем {2} не помещаются в один ответ DNS: вместе они могут занимать не больше {3} байт.",
    ],
    ["{1} is the top of the domain, which cannot have a CNAME.", "{1} — вершина домена, там не может быть CNAME."],
    [
      "A CNAME must be the only record at its name, but {a}.",
      "CNAME должна быть единственной записью своего имени, но {a}.",
    ],
    [
      "A delegated name may have only NS and address records, and only addresses below it, but {a}.",
      "У делегированного имени могут быть только NS и адреса, а ниже него — только адреса, но {a}.",
    ],
    [
      'A name that accepts no mail has no other MX than "{1}" (RFC 7505), but {a}.',
      "У имени, которое не принимает почту, может быть только MX «{1}» (RFC 7505), но {a}.",
    ],
    [
      "{1} changes conflict with other records. The first: {A?}",
      "Изменений, которые противоречат другим записям: {1}. Первое: {A?}",
    ],

    // Zone files, and zones of other name servers.
    ["No name servers were found for {1}.", "Серверы имён для {1} не найдены."],
    ["No name server of {1} responded for it.", "Ни один сервер имён домена {1} не ответил за него."],
    [
      "The name servers of {1} refused the transfer and did not respond to queries in time.",
      "Серверы имён домена {1} не разрешили передачу зоны и не ответили на запросы вовремя.",
    ],
    ["1 line of the zone file cannot be imported.", "Одну строку файла зоны нельзя импортировать."],
    ["{1} lines of the zone file cannot be imported.", "Строк файла зоны, которые нельзя импортировать: {1}."],
    [
      "At least {1} lines of the zone file cannot be imported.",
      "Строк файла зоны, которые нельзя импортировать: не меньше {1}.",
    ],
    ["line {1}: {a}.", "строка {1}: {a}."],
    ["line {1}: {A}", "строка {1}: {A}"],
  ],
  phrases: [
    // What exists beside a record.
    ["there is another record", "есть другая запись"],
    ["there is record {1}, {2} at {3}", "есть запись {1}: {2}, имя {3}"],
    ["there is {1} at {2}", "есть запись {1}, имя {2}"],

    // Names.
    ["must be a name, not the address {1}", "нужно имя, а не адрес {1}"],
    ["must be {1} or a name inside it, not {2}", "нужно {1} или имя внутри него, а не {2}"],
    ["must be a host name, not the address {1}", "нужно имя хоста, а не адрес {1}"],
    ["must be a host name, not {1}", "нужно имя хоста, а не {1}"],
    ["must have escapes such as \\. or \\032, unlike {1}", "допустимы только записи вида \\. и \\032, а здесь {1}"],
    ["must be at most {1} characters long, and {2} has {3}", "длина в знаках — не больше {1}, а у {2} — {3}"],
    [
      "must be at most {1} characters long with the domain, and {2} has {3}",
      "длина в знаках вместе с доменом — не больше {1}, а у {2} — {3}",
    ],
    [
      "must be at most {1} characters long with its origin, not {2}",
      "длина в знаках вместе с $ORIGIN — не больше {1}, а не {2}",
    ],
    ["must not have an empty label, as {1} has", "в имени не может быть пустой метки, а в {1} она есть"],
    [
      "must have labels of at most {1} characters, and {2} has one of {3}",
      "длина метки имени — не больше {1}, а в {2} есть метка длиной {3}",
    ],
    [
      "must not have a hyphen at the start or end of a label, as {1} has",
      "метка имени не может начинаться или кончаться дефисом, как в {1}",
    ],
    [
      "may have * only as its whole first label, unlike {1}",
      "знак * может быть только всей первой меткой, а не как в {1}",
    ],
    ["must be a name of letters, digits, - and _, not {1}", "нужно имя из букв, цифр, знаков - и _, а не {1}"],
    ["must have labels that IDNA knows, and {1} is none", "метки имени должны соответствовать IDNA, а {1} — нет"],
    [
      "must leave the served name at most {1} characters, and it has {2}",
      "длина полного имени в знаках — не больше {1}, а здесь {2}",
    ],
    ["is not inside {1}: {2}", "имя не внутри {1}: {2}"],
    ["may not begin with * in an {1} record: {2}", "в записи {1} имя не может начинаться с *: {2}"],
    ["must begin with {1} in an {2} record: {3}", "в записи {2} имя должно начинаться с {1}: {3}"],
    ["must not be an alias of itself, as {1} is", "имя не может быть псевдонимом самого себя, как {1}"],
    ["must not make an alias of itself, as {1} is", "имя не может быть псевдонимом самого себя, как {1}"],
    [
      "must be one label of letters, digits, - and _ such as {1}, not {2}",
      "нужна одна метка из букв, цифр, знаков - и _, например {1}, а не {2}",
    ],

    // Values.
    ["must be 1 to 4096 bytes long, and is empty", "длина — от 1 до 4096 байт, а значение пустое"],
    ["must be at most {1} strings, and is {2}", "строк — не больше {1}, а здесь {2}"],
    ["must be UTF-8, and some bytes are not", "нужна кодировка UTF-8, а некоторые байты в другой"],
    ["must not hold control characters, and has U+{1}", "управляющие знаки недопустимы, а здесь есть U+{1}"],
    ["must be at most {1} bytes long, and has {2}", "длина в байтах — не больше {1}, а здесь {2}"],
    ["must be a number from 0 to {1}, not {2}", "нужно число от 0 до {1}, а не {2}"],
    ["must have numbers from 0 to {1}", "нужны числа от 0 до {1}"],
    ["must be an IPv4 address such as 192.0.2.1, not {1}", "нужен адрес IPv4, например 192.0.2.1, а не {1}"],
    ["must be an IPv6 address, not {1}", "нужен адрес IPv6, а не {1}"],
    ["must be an IPv4 or IPv6 address", "нужен адрес IPv4 или IPv6"],
    ["must have an IPv4 address such as 192.0.2.1, not {1}", "нужен адрес IPv4, например 192.0.2.1, а не {1}"],
    ["must have an IPv6 address, not {1}", "нужен адрес IPv6, а не {1}"],
    ["must have a host name as target, not the address {1}", "цель — имя хоста, а не адрес {1}"],
    ['must have a host name as target, not "."', "цель — имя хоста, а не «.»"],
    ["must have a text", "нужен текст"],
    ["must be bytes in hexadecimal, not {1}", "нужны байты шестнадцатеричными цифрами, а не {1}"],
    ["must be bytes in base64, not {1}", "нужны байты в base64, а не {1}"],
    ["must have bytes in hexadecimal, not {1}", "нужны байты шестнадцатеричными цифрами, а не {1}"],
    ["must have bytes in base64, not {1}", "нужны байты в base64, а не {1}"],
    ["has {1} bytes of data that are no {2} data", "данные длиной {1} байт не подходят типу {2}"],
    [
      "must have a length and as many bytes in hexadecimal behind \\#",
      "после \\# нужны длина и столько же байт шестнадцатеричными цифрами",
    ],
    ["must have {1} word of data, not {2}", "слов в данных — {1}, а не {2}"],
    ["must have {1} words of data, not {2}", "слов в данных — {1}, а не {2}"],
    ["{a} before its {b}", "{a} (перед этим: {b})"],
    ["number", "число"],
    ["address", "адрес"],
    ["target", "цель"],
    ["string", "строка"],
    ["text", "текст"],
    ["value", "значение"],
    ["data", "данные"],
    [
      'must not pair "." (no mail) with a {1} of {2}: it requires {3}',
      "значение «.» (нет почты) требует {1} {3}, а не {2}",
    ],
    [
      'must not pair "." (no service) with a {1} of {2}: it requires {3}',
      "значение «.» (нет службы) требует {1} {3}, а не {2}",
    ],

    // What a required field is.
    ["the domain of the record", "домен записи"],
    ["the alias", "псевдоним"],
    ["the target", "цель"],
    ["the mail host", "почтовый сервер"],
    ["the name server", "сервер имён"],
    ["the port of the service", "порт службы"],
    ["the host of the service", "хост службы"],
    ["the text", "текст"],
    ["the value", "значение"],
    ["a host name", "имя хоста"],
    ["a number from 0 to {1}", "число от 0 до {1}"],
    ["an IPv4 address such as 192.0.2.1", "адрес IPv4, например 192.0.2.1"],
    ["an IPv6 address", "адрес IPv6"],
    ["bytes in hexadecimal", "байты шестнадцатеричными цифрами"],
    ["bytes in base64", "байты в base64"],
    ["such as {1}", "например {1}"],
    ["unknown", "причина неизвестна"],

    // Lines of zone files.
    ["the owner {a}", "имя записи: {a}"],
    ["the origin {a}", "$ORIGIN: {a}"],
    ["the {1} record {a}", "запись {1}: {a}"],
    ["the comment must contain labels such as env=prod, not {1}", "в комментарии нужны метки вида env=prod, а не {1}"],
    ["the comment must have at most {1} labels, not {2}", "меток в комментарии — не больше {1}, а не {2}"],
    ["the range must be such as 1-254 or 0-100/2, not {1}", "нужен диапазон вида 1-254 или 0-100/2, а не {1}"],
    ["the range must have at most {1} steps, not as many as {2}", "шагов в диапазоне — не больше {1}, а в {2} больше"],
    [
      "must have an offset, width and base such as ${0,3,d}, not {1}",
      "нужны смещение, ширина и основание вида ${0,3,d}, а не {1}",
    ],
    [
      "the $GENERATE lines must create at most {1} records together",
      "строки $GENERATE вместе могут создать не больше {1} записей",
    ],
    [
      "$GENERATE must have a range, an owner, a type and data after it",
      "после $GENERATE нужны диапазон, имя, тип и данные",
    ],
    [
      "$INCLUDE is not supported, insert the lines of the file instead",
      "$INCLUDE не поддерживается, вставьте вместо неё строки файла",
    ],
    ["{1} is no directive", "директивы {1} нет"],
    ["{1} must have one value after it", "после {1} нужно одно значение"],
    [
      "$TTL must have a time such as 3600 or 1h after it, not {1}",
      "после $TTL нужно время, например 3600 или 1h, а не {1}",
    ],
    ["the TTL must be at most {1}, not {2}", "TTL — не больше {1}, а не {2}"],
    ["class {1} is not served here, only IN", "класс {1} здесь не обслуживается, только IN"],
    ["the type of the record is missing", "не указан тип записи"],
    ["{1} is no type of record", "типа записей {1} нет"],
    ["there is no previous owner to continue with", "нет предыдущей записи, имя которой можно повторить"],
  ],
};
