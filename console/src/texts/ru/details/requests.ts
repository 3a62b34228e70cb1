/** Details of what is wrong with a request or with a field in it, in Russian. */
import type { Table } from "../../translate.ts";

export const requests: Table = {
  sentences: [
    // A field and what is wrong with it.
    ["{1} {a}.", "{1}: {a}."],
    ["{1} {a}, not {b?}.", "{1}: {a}; получено: {b?}."],
    ["1 field is not valid.", "Одно поле содержит ошибку."],
    ["{1} fields are not valid.", "Полей с ошибками: {1}."],
    ["{1} parameters are not valid.", "Параметров с ошибками: {1}."],
    ["The field {1} does not exist in this request.", "Поля {1} нет в этом запросе."],
    ["The parameter {1} does not exist for this operation.", "Параметра {1} нет у этой операции."],
    ["ID is required, or ServerIDs instead.", "ID: обязательное поле; вместо него можно указать ServerIDs."],
    [
      "ServerID is required, or Url, File or Size instead.",
      "ServerID: обязательное поле; вместо него можно указать Url, File или Size.",
    ],
    ["Migrate must not be true if ZoneFile is given.", "Migrate: не может быть true, если указано поле ZoneFile."],
    [
      "Confirm must be true if it is the only field of the body, not false.",
      "Confirm: единственное поле запроса может иметь только значение true, но не false.",
    ],
    [
      "Confirm must be the only field of the body, without {1}.",
      "Confirm: должно быть единственным полем запроса, без {1}.",
    ],
    [
      "Send exactly one of Count, Names and Servers, not {a?}.",
      "Укажите ровно одно из полей Count, Names и Servers; получено: {a?}.",
    ],

    // The body.
    ["The body is a list.", "Тело запроса — список."],
    ["The body is a single value.", "Тело запроса — одно значение."],
    ["The body is not UTF-8.", "Тело запроса не в кодировке UTF-8."],
    ["The body is neither JSON nor a form.", "Тело запроса — ни JSON, ни форма."],
    ["The body is not JSON: {a} at character {1}.", "Тело запроса — не JSON: {a}, знак {1}."],
    ["The body is not valid HTTP: {a?}.", "Тело запроса не соответствует HTTP: {a?}."],
    ["The body must not be longer than {1} bytes.", "Тело запроса не может быть длиннее {1} байт."],
    ["The body did not arrive in time.", "Тело запроса не пришло вовремя."],
    ["The body did not arrive within {1} seconds.", "Тело запроса не пришло за {1} с."],
    ["The form is not percent-encoded UTF-8.", "Форма не в кодировке UTF-8 с процентами."],
    ["The form has more than {1} levels.", "В форме больше {1} уровней вложенности."],
    ["The form has more than {1} different names below one name.", "В форме под одним именем больше {1} разных имён."],
    [
      "The media type {1} is not supported; send application/json.",
      "Тип содержимого {1} не поддерживается; отправьте application/json.",
    ],
    ["The content encoding {1} is not supported.", "Кодировка содержимого {1} не поддерживается."],

    // The head of the request.
    ["The head of the request did not arrive in time.", "Заголовки запроса не пришли вовремя."],
    ["The request target must not be longer than {1} bytes.", "Адрес запроса не может быть длиннее {1} байт."],
    ["All headers together must not be longer than {1} bytes.", "Все заголовки вместе не могут быть длиннее {1} байт."],
    ["The request target is not valid: {a?}.", "Адрес запроса неверен: {a?}."],
    ["The request is not valid HTTP: {a?}.", "Запрос не соответствует HTTP: {a?}."],
    [
      "The request target is not a path in percent-encoded UTF-8.",
      "Адрес запроса — не путь в кодировке UTF-8 с процентами.",
    ],
    [
      "The request has a Content-Length and a Transfer-Encoding; send one of them.",
      "В запросе есть и Content-Length, и Transfer-Encoding; отправьте одно из двух.",
    ],
    [
      "The last coding of Transfer-Encoding must be chunked, not {1}.",
      "Последний способ в Transfer-Encoding должен быть chunked; получено: {1}.",
    ],
    [
      "Transfer-Encoding must be chunked alone, not {1}.",
      "В Transfer-Encoding может быть только chunked; получено: {1}.",
    ],
    [
      "Idempotency-Key must be 1 to 255 visible ASCII characters.",
      "Idempotency-Key: нужно от 1 до 255 видимых знаков ASCII.",
    ],
    [
      "The first request with this key is still running. Repeat this one later.",
      "Первый запрос с этим ключом ещё выполняется. Повторите этот позже.",
    ],
    [
      "Another request was sent with this key within the last 24 hours: its method, path, query or body differs.",
      "За последние 24 часа с этим ключом отправлен другой запрос: у него другой метод, путь, параметры или тело.",
    ],
    ["No operation has this path; /docs lists all paths.", "Операции с таким путём нет; все пути перечислены в /docs."],
    ["This path supports {1}.", "Этот путь поддерживает {1}."],
    [
      "No {1} has this ID: an ID is a number from 1 to 2147483647.",
      "Такого ID нет ({1}): ID — число от 1 до 2147483647.",
    ],
    ['The current ETag is "{1}".', "Нынешний ETag: «{1}»."],
    ["The service is starting.", "Сервис запускается."],
    ["The service is stopping.", "Сервис останавливается."],
    [
      "The request failed in the service. The log contains the cause under the id of this request.",
      "Сервис не выполнил запрос. Причина есть в журнале под идентификатором этого запроса.",
    ],
    ["The database is not available.", "База данных недоступна."],
    [
      "The disk of the database is full: the operator must free some space. Reads still work.",
      "Диск базы данных заполнен: оператору нужно освободить место. Чтение работает.",
    ],
    [
      "Repeat the request, with the same Idempotency-Key if it had one.",
      "Повторите запрос, с тем же Idempotency-Key, если он был.",
    ],

    // Content of uploads.
    [
      'Content-Range must be "bytes FIRST-LAST/SIZE", not {1}.',
      "Content-Range: нужно «bytes FIRST-LAST/SIZE»; получено: {1}.",
    ],
    [
      "Content-Range: the last byte, {1}, is before the first, {2}.",
      "Content-Range: последний байт {1} стоит перед первым, {2}.",
    ],
    [
      "Content-Range: the last byte, {1}, is not below the size, {2}.",
      "Content-Range: последний байт {1} должен быть меньше размера {2}.",
    ],
    [
      "Content-Range names {1} bytes, and Content-Length {2}.",
      "Content-Range и Content-Length указывают разное число байт: {1} и {2}.",
    ],
    ["Content-Encoding must be identity.", "Content-Encoding: допустимо только identity."],
    [
      "The content must be the body itself, not a part of a form.",
      "Содержимое должно быть самим телом запроса, а не частью формы.",
    ],
    [
      "The content has more than the {1} bytes that its range names.",
      "Содержимое длиннее указанного диапазона, байт в нём: {1}.",
    ],
    [
      "The content ended after {1} of {2} bytes. What arrived is stored.",
      "Содержимое закончилось: пришло {1} байт из {2}. Полученное сохранено.",
    ],
    ["No content arrived for {1} seconds.", "Содержимое не приходит уже {1} с."],

    // Parameters of lists, events and measurements.
    ["cursor cannot be given with newest.", "cursor нельзя указывать вместе с newest."],
    [
      "cursor must come from the Link header of an earlier response.",
      "cursor: нужно значение из заголовка Link прежнего ответа.",
    ],
    ["Last-Event-ID must be the ID of an event: 1 to 15 digits.", "Last-Event-ID: нужен ID события, от 1 до 15 цифр."],
    [
      "The token has {1} open event streams, the maximum is {2}. Close one of them.",
      "Открыто потоков событий с этим токеном: {1}, предел: {2}. Закройте один из них.",
    ],
    ["from must not be later than to.", "from: не может быть позже, чем to."],
    [
      "step must be longer: more than {1} values would be returned.",
      "step: нужен больший шаг, иначе значений в ответе будет больше {1}.",
    ],
    ["label {a} at character {1}, not {b?}.", "label: {a}, знак {1}; получено: {b?}."],
  ],
  phrases: [
    ["is required", "обязательное поле"],
    ["is required: {a?}", "обязательное поле: {a?}"],
    ["is required with {1}", "обязательное поле, если указано {1}"],
    ["is required for {1}", "обязательное поле для {1}"],
    [
      "is required for {1}, or NetworkLinkID instead",
      "обязательное поле для {1}; вместо него можно указать NetworkLinkID",
    ],
    ["is required to {1} a record", "обязательное поле, чтобы изменить или удалить запись ({1})"],
    ["is required to create a record", "обязательное поле, чтобы создать запись"],
    ["requires {1}", "нельзя указать без {1}"],
    ["must not be sent together with {1}", "нельзя указать вместе с {1}"],
    ["must not be sent with {1}", "нельзя указать с {1}"],
    ["is given more than once", "указано больше одного раза"],
    ["has {1} more than once", "{1} указано больше одного раза"],
    ["is not percent-encoded UTF-8", "не в кодировке UTF-8 с процентами"],
    ["must be {1}", "нужно {1}"],
    ["must be {1}, or absent", "нужно {1}, или поле нужно убрать"],
    ["must be one of {1}, or absent", "допустимо {1}, или поле нужно убрать"],
    ["must be one of {1}", "допустимо одно из: {1}"],
    ["must be one or several of {1}", "допустимо одно или несколько из: {1}"],
    [
      "must be one or several of {1}, or beginnings of them with * at the end",
      "допустимо одно или несколько из: {1}, или их начала со знаком * в конце",
    ],
    ["must be between {1} and {2}", "нужно число от {1} до {2}"],
    ["must be an integer between {1} and {2}", "нужно целое число от {1} до {2}"],
    ["must be a multiple of {1}", "нужно число, кратное {1}"],
    ["must be true or false", "допустимо true или false"],
    ["must be a date such as 2026-11-20T09:15:00Z", "нужна дата, например 2026-11-20T09:15:00Z"],
    ["must be text", "нужен текст"],
    ["must be text with {a}", "нужен текст: {a}"],
    ["must be text with no character U+0000", "нужен текст без знака U+0000"],
    ["must be text without blanks at its ends", "нужен текст без пробелов в начале и в конце"],
    [
      "must be text with at most 30 combining marks in a row",
      "нужен текст, в котором подряд не больше 30 комбинируемых знаков",
    ],
    ["must be at least {1} character long", "длина в знаках — не меньше {1}"],
    ["must be at least {1} characters long", "длина в знаках — не меньше {1}"],
    ["must be at most {1} character long", "длина в знаках — не больше {1}"],
    ["must be at most {1} characters long", "длина в знаках — не больше {1}"],
    ["must be {1} to {2} characters long", "длина в знаках — от {1} до {2}"],
    ["must match {1}", "нужен текст по образцу {1}"],
    ["must be an object", "нужен объект"],
    ["must be an object of texts", "нужен объект, значения которого — тексты"],
    ["must be a list", "нужен список"],
    ["must be a list of objects", "нужен список объектов"],
    ["must have objects only", "в списке могут быть только объекты"],
    ["must have values only", "в списке не может быть пустых значений"],
    ["must have at least {1} item", "элементов в списке — не меньше {1}"],
    ["must have at least {1} items", "элементов в списке — не меньше {1}"],
    ["must have at most {1} item", "элементов в списке — не больше {1}"],
    ["must have at most {1} items", "элементов в списке — не больше {1}"],
    ["must have at most {1} label", "меток — не больше {1}"],
    ["must have at most {1} labels", "меток — не больше {1}"],
    ["must have keys of {a}", "вид ключей: {a}"],
    ["must have values of {a}", "вид значений: {a}"],
    ["must have at most {1} bytes", "длина в байтах — не больше {1}"],
    ["must name at most {1} objects", "объектов — не больше {1}"],

    // Forms of texts, keys and values.
    [
      "1-63 letters, digits, dots, underscores and hyphens, with a letter or digit at both ends, after an optional prefix and slash",
      "от 1 до 63 букв, цифр, точек, подчёркиваний и дефисов, в начале и в конце буква или цифра; перед ними можно поставить префикс и косую черту",
    ],
    [
      "at most 63 letters, digits, dots, underscores and hyphens, with a letter or digit at both ends",
      "не больше 63 букв, цифр, точек, подчёркиваний и дефисов, в начале и в конце буква или цифра",
    ],
    ["1-63 of a-z, 0-9 and -, no hyphen at the ends", "от 1 до 63 знаков a-z, 0-9 и -, без дефиса в начале и в конце"],
    ["64 hexadecimal digits", "64 шестнадцатеричные цифры"],
    ["letters, digits, dots, underscores and hyphens", "буквы, цифры, точки, подчёркивания и дефисы"],
    ["no control characters, no < and no >", "без управляющих знаков, без < и >"],
    ["visible ASCII characters only", "только видимые знаки ASCII"],

    // What came instead.
    ["a list", "список"],
    ["an object", "объект"],
    ["empty", "пусто"],
    ["none", "ни одного"],
    ["nothing", "конец"],

    // Why a body is not JSON, a request not HTTP.
    ["a string without end", "строка не закрыта"],
    ["a control character in a string", "управляющий знак в строке"],
    ["half a surrogate pair in the string that ends", "половина суррогатной пары в строке, конец строки"],
    ["an escape without four hexadecimal digits", "после \\u нет четырёх шестнадцатеричных цифр"],
    ["an unknown escape", "неизвестная последовательность после \\"],
    ["an object with more than {1} fields", "в объекте больше {1} полей"],
    ["no name of a field", "нет имени поля"],
    ["no colon", "нет двоеточия"],
    ["no comma or closing brace", "нет запятой или закрывающей фигурной скобки"],
    ["no comma or closing bracket", "нет запятой или закрывающей квадратной скобки"],
    ["more than {1} levels", "больше {1} уровней вложенности"],
    ["no value", "нет значения"],
    ["something after the end", "после конца есть ещё что-то"],
    ["it cannot be parsed", "его нельзя разобрать"],

    // Parameters.
    ["must have a key", "нужен ключ"],
    ["must have a value", "нужно значение"],
    ['must have ","', "нужна запятая"],
    ['must have "("', "нужно «(»"],
    ['must have "," or ")"', "нужно «,» или «)»"],
    ["must be a kind or kind:id", "нужен вид объекта или вид:id"],
    ["must be a kind and an id such as domain:3", "нужен вид объекта и id, например domain:3"],
    ["must be one of {1}, with an id", "допустимо одно из: {1}, вместе с id"],
    ["must be one of {1}, with or without an id", "допустимо одно из: {1}, с id или без него"],
    [
      "must be the name of an operation as /docs has it, or the beginning of one with *",
      "нужно имя операции, как в /docs, или его начало со знаком *",
    ],
  ],
};
