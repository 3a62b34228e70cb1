/** Details of errors of tokens, sessions, projects, keys, images and webhooks in Russian. */
import type { Table } from "../../translate.ts";

export const access: Table = {
  sentences: [
    ["The request has no bearer token.", "В запросе нет токена Bearer."],
    ["The token is not known.", "Такого токена нет."],
    ["The session has ended. Sign in again.", "Сеанс завершён. Войдите снова."],
    ["The token expired at {1}.", "Срок токена истёк: {1}."],
    ["The session expired at {1}.", "Срок сеанса истёк: {1}."],
    ["The token may not be used from {1}.", "С адреса {1} этот токен не действует."],
    ["The token needs the scope {1}.", "Токену нужно право {1}."],
    ["The token may send {1} requests in {2} seconds.", "Предел запросов с этим токеном: {1} за {2} с."],
    ["A network may sign in {1} times in {2} seconds.", "Предел входов из одной сети: {1} за {2} с."],
    ["The project of the token has been deleted.", "Проект этого токена удалён."],
    ["The token has been deleted.", "Токен удалён."],
    ["The project of this token was deleted.", "Проект этого токена удалён."],
    ["Project {1} of the token does not exist any more.", "Проекта {1}, которому принадлежит токен, больше нет."],
    ["The project is blocked.", "Проект заблокирован."],
    [
      "The project is blocked: its objects can only be read and deleted.",
      "Проект заблокирован: его объекты можно только читать и удалять.",
    ],
    [
      "Project {1} is blocked: its objects can only be read and deleted.",
      "Проект {1} заблокирован: его объекты можно только читать и удалять.",
    ],
    ["{a?}: wanted {2}, free {3}, limit {4}.", "{a?}: нужно {2}, свободно {3}, предел {4}."],
    ["There is no project {1}.", "Проекта {1} нет."],
    ["There is no token {1}.", "Токена {1} нет."],
    ["There is no session {1}.", "Сеанса {1} нет."],
    ["The request has a token, and no session.", "В запросе есть токен, но нет сеанса."],
    ["A session cannot create another one: send the token.", "Сеанс не может создать другой сеанс: отправьте токен."],
    ['Project {1} already has the name "{2}".', "Имя «{2}» уже занято: проект {1}."],
    [
      "Project {1} is the project of your token. Delete it with a token of another project.",
      "Проект {1} — это проект вашего токена. Удалите его с токеном другого проекта.",
    ],
    ["Project {1} owns {2}.", "Проекту {1} принадлежат объекты: {2}."],
    [
      "Project {1} has the only tokens with account:admin.",
      "Все токены с правом account:admin принадлежат проекту {1}.",
    ],
    [
      "Token {1} is the only one left with account:admin. Create another administrator token first.",
      "Токен {1} — последний с правом account:admin. Сначала создайте другой токен администратора.",
    ],
    ["There is no domain {1} in project {2}.", "Домена {1} нет в проекте {2}."],
    ["Token {1} is restricted to records and may not {a}.", "Токен {1} ограничен записями и не может {a}."],
    ['Token {1} does not allow {2} records at "{3}".', "Токену {1} не разрешены записи {2} с именем «{3}»."],

    // Keys, images, webhooks.
    ["There is no SSH key {1} in this project.", "Ключа SSH {1} нет в этом проекте."],
    [
      'SSH key {1} already has the title "{2}", with another key.',
      "Название «{2}» уже занято: ключ SSH {1}, с другим ключом.",
    ],
    ["There is no image {1} in this project.", "Образа {1} нет в этом проекте."],
    ["Image {1} does not exist in this project.", "Образа {1} нет в этом проекте."],
    ["Image {1} does not exist any more.", "Образа {1} больше нет."],
    ["Image {1} ({2}) is {3}, not Active.", "Образ {1} ({2}): состояние {3}, а нужно Active."],
    [
      "Image {1} ({2}) belongs to the operator and cannot be deleted.",
      "Образ {1} ({2}) принадлежит оператору, удалить его нельзя.",
    ],
    ["Image {1} was deleted.", "Образ {1} удалён."],
    ["Image {1} was deleted during the upload.", "Образ {1} удалён во время отправки."],
    ["Image {1} is {2}, so it waits for no content.", "Образ {1} не ждёт содержимого: состояние {2}."],
    [
      "Image {1} has received {2} of {3} bytes, so content begins there, not at {4}.",
      "Образ {1}: получено {2} байт из {3}, поэтому содержимое начинается там, а не с {4}.",
    ],
    ["The file of image {1} has {2} bytes, not {3}.", "Размер файла образа {1} в байтах: {2}, а не {3}."],
    [
      "The content goes beyond the {1} bytes of the file.",
      "Содержимое выходит за конец файла, размер которого в байтах: {1}.",
    ],
    ["Another request continues the upload of image {1}.", "Отправку образа {1} продолжает другой запрос."],
    [
      "The host did not take the content: {a?}. Read the image, and continue where it ends.",
      "Хост не принял содержимое: {a?}. Прочитайте образ и продолжите с того места, где он кончается.",
    ],
    [
      "The host could not check the image: {a?}. Repeat the request later.",
      "Хост не смог проверить образ: {a?}. Повторите запрос позже.",
    ],
    ["There is no webhook {1} in this project.", "Вебхука {1} нет в этом проекте."],
    ["Webhook {1} has no delivery {2}.", "У вебхука {1} нет доставки {2}."],

    // Deliveries of webhooks.
    ["The endpoint returned status {1}.", "Получатель ответил кодом {1}."],
    ["The endpoint did not respond within {1} seconds.", "Получатель не ответил за {1} с."],
    ["Could not reach the endpoint: {a?}.", "Получатель недоступен: {a?}."],
    [
      '"{1}" has an address that webhooks may not call (BRUME_WEBHOOK_ALLOW allows more).',
      "Адрес «{1}» недоступен вебхукам (другие адреса разрешает BRUME_WEBHOOK_ALLOW).",
    ],
    [
      "Dropped: more than {1} deliveries waited while the endpoint accepted others.",
      "Отброшено: ожидало больше {1} доставок, хотя получатель принимал другие.",
    ],
    ["The event has been deleted.", "Событие удалено."],
    ["The thread that sends webhooks has ended.", "Поток, который отправляет вебхуки, завершился."],
    [
      "Internal error: the service could not send this delivery and has logged the cause.",
      "Внутренняя ошибка: сервис не смог отправить событие и записал причину в журнал.",
    ],
    [
      "Event {1} has been deleted, so delivery {2} cannot be sent again.",
      "Событие {1} удалено, поэтому доставку {2} нельзя повторить.",
    ],
  ],
  phrases: [
    ["claim domains", "подавать заявки на домены"],
    ["create domains", "создавать домены"],
    ["update domains", "менять домены"],
    ["delete domains", "удалять домены"],
    ["import zone files", "импортировать файлы зон"],
    ["restore versions", "восстанавливать версии"],
    [
      "must be dns:read or dns:write if DomainID is given",
      "если указано DomainID, допустимы только dns:read и dns:write",
    ],
    ["must be in the future", "нужно время в будущем"],
    [
      "must be an owner relative to the domain such as www, @ or _acme-challenge*, without final dot",
      "нужно имя относительно домена, например www, @ или _acme-challenge*, без точки в конце",
    ],
    ["must contain addresses or blocks such as 10.0.0.0/8", "нужны адреса или блоки, например 10.0.0.0/8"],
    ["must be an existing project", "нужен существующий проект"],

    ["must be a public key in OpenSSH form, not a PEM file", "нужен открытый ключ в формате OpenSSH, а не файл PEM"],
    ["must be one line without control characters", "нужна одна строка без управляющих знаков"],
    [
      "must begin with the type of the key, no options in front",
      "строка должна начинаться с типа ключа, без параметров перед ним",
    ],
    ["must be a key of type {1}", "нужен ключ типа {1}"],
    [
      "must be an OpenSSH line: type base64 [comment], or the base64 part alone",
      "нужна строка OpenSSH: тип base64 [комментарий], или только часть base64",
    ],
    [
      "must be a complete OpenSSH public key; the encoded data of this one is broken",
      "нужен целый открытый ключ OpenSSH; закодированные данные этого ключа повреждены",
    ],
    [
      "must have the type that it states: the encoded type is {1}",
      "тип в строке не совпадает с типом в самом ключе: {1}",
    ],
    ["must be the id or name of an image", "нужен id или имя образа"],
    ["the operator has installed no image", "оператор не установил ни одного образа"],
    ["must be an http or https address", "нужен адрес http или https"],

    [
      "must be a valid address that begins with https:// or http://",
      "нужен правильный адрес, который начинается с https:// или http://",
    ],
    [
      "must not contain a user name, a password or a fragment",
      "в адресе не может быть имени пользователя, пароля и фрагмента",
    ],
    [
      "must not lead to an address that webhooks may not call; BRUME_WEBHOOK_ALLOW allows more",
      "адрес недоступен вебхукам; другие адреса разрешает BRUME_WEBHOOK_ALLOW",
    ],
    [
      "must contain event types such as record.created, or prefixes such as record.*",
      "нужны типы событий, например record.created, или префиксы, например record.*",
    ],

    // Quotas.
    ["Servers", "Серверы"],
    ["CPU", "Виртуальные CPU"],
    ["RAM", "Память, МБ"],
    ["HDD", "Диск, ГБ"],
    ["PublicNetworks", "Публичные сети"],
    ["PrivateNetworks", "Частные сети"],
    ["Domains", "Домены"],
    ["RecordsPerDomain", "Записи в домене"],
    ["FirewallRules", "Правила межсетевого экрана"],
    ["Tunnels", "Туннели в сети"],
    ["SshKeys", "Ключи SSH"],
    ["Images", "Образы"],
    ["Tokens", "Токены"],
    ["Webhooks", "Вебхуки"],

    // Why an endpoint cannot be reached.
    ["it refused the connection", "соединение отклонено"],
    ["it closed the connection", "соединение закрыто"],
    ["no route leads to its host", "нет маршрута к хосту"],
    ["no route leads to its network", "нет маршрута к сети"],
    ["it did not accept the connection in time", "соединение не принято вовремя"],
    ["its name does not exist", "такого имени нет"],
    ["no name server answered for its name", "серверы имён не ответили"],
    ["its certificate is self-signed", "сертификат самоподписанный"],
    ["its certificate is from an unknown authority", "сертификат выдан неизвестным центром"],
    ["its certificate has expired", "срок сертификата истёк"],
    ["its certificate is for another name", "сертификат выдан на другое имя"],
    ["TLS could not be negotiated", "не удалось согласовать TLS"],
  ],
};
