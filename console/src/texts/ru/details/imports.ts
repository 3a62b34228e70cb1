/** Why an image cannot be imported, in Russian. */
import type { Table } from "../../translate.ts";

export const imports: Table = {
  sentences: [
    [
      "There is not enough space on the host for the image. Delete images or backups, then repeat the request.",
      "На хосте не хватает места для образа. Удалите образы или копии и повторите запрос.",
    ],
    [
      "The host has {1} bytes of disk space for the {2} bytes of the image. Delete images or backups, then repeat the request.",
      "На диске хоста свободно {1} байт, а образ занимает {2} байт. Удалите образы или копии и повторите запрос.",
    ],
    ["The image is refused: {a}.", "Образ не принят: {a}."],
    ["Images cannot be imported: servers are simulated.", "Образы нельзя импортировать: работа серверов имитируется."],
    ["The image is empty.", "Образ пуст."],
    ["The image is larger than {1} GB.", "Образ больше {1} ГБ."],
    ["The image must be qcow2 or raw; this file is {1}.", "Нужен образ qcow2 или raw, а этот файл — {1}."],
    ["The image is a qcow2 that ends within its header.", "Образ qcow2 обрывается внутри заголовка."],
    ["The image is a qcow2 of version {1}.", "Версия образа qcow2 не поддерживается: {1}."],
    ["The image is marked as damaged.", "Образ помечен как повреждённый."],
    ["The image is damaged: it could not be read completely.", "Образ повреждён: его не удалось прочитать целиком."],
    ['Image "{1}": the file {2} is missing.', "Образ «{1}»: нет файла {2}."],
    ['Image "{1}": the file {2} is not a qcow2.', "Образ «{1}»: файл {2} — не qcow2."],
    ['"{1}" is not a valid image name.', "«{1}» не может быть именем образа."],
    ['"{1}" cannot be the name of an image.', "«{1}» не может быть именем образа."],
    ['There is no image "{1}".', "Образа «{1}» нет."],
    ['The catalogue has no image "{1}".', "В каталоге нет образа «{1}»."],

    // Downloads.
    [
      '"{1}" has an address of this host, or none of the public internet.',
      "«{1}»: это адрес этого хоста или не адрес публичного интернета.",
    ],
    [
      "The address of an image must begin with https:// or http://.",
      "Адрес образа должен начинаться с https:// или http://.",
    ],
    [
      "The address of an image must not contain a user name or password.",
      "В адресе образа не может быть имени пользователя и пароля.",
    ],
    ['"{1}" redirects from https to http.', "«{1}» перенаправляет с https на http."],
    ['"{1}" redirects more than {2} times.', "«{1}»: перенаправлений больше {2}."],
    ['"{1}" returned status {2} for {3}.', "«{1}» ответил кодом {2} на запрос {3}."],
    ['"{1}" could not be read: {a?}.', "Не удалось прочитать «{1}»: {a?}."],
    ['"{1}" sends a checksum file of more than {2} bytes.', "Файл контрольных сумм «{1}» больше {2} байт."],
    ['"{1}" sends another range than requested.', "«{1}» присылает не тот диапазон, который запрошен."],
    ['"{1}" publishes no checksum of {2}.', "«{1}» не публикует контрольную сумму файла {2}."],
    ["The sha256 of {1} is {2}; expected {3}.", "Сумма SHA-256 файла {1} — {2}, а ожидалась {3}."],
    ["The sha512 of {1} is {2}; expected {3}.", "Сумма SHA-512 файла {1} — {2}, а ожидалась {3}."],
    ["A SHA-256 has 64 hexadecimal digits.", "В SHA-256 64 шестнадцатеричные цифры."],

    // Files on the host, and uploads.
    ["The name of a file to import has no folder in it.", "В имени файла для импорта не может быть папки."],
    ['There is no file "{1}" in the import folder.', "Файла «{1}» нет в папке импорта."],
    ['"{1}" in the import folder is not a regular file.', "«{1}» в папке импорта — не обычный файл."],
    ["The uploaded file is not on the host any more.", "Отправленного файла на хосте больше нет."],
    ["The uploaded file has {1} bytes; expected {2}.", "Размер отправленного файла в байтах — {1}, а ожидалось {2}."],
    [
      "The sha256 of the uploaded file is {1}; expected {2}.",
      "Сумма SHA-256 отправленного файла — {1}, а ожидалась {2}.",
    ],
  ],
  phrases: [
    ["no data for {1} s", "данных не было {1} с"],
    ["the file has changed", "файл изменился"],
    ["getaddrinfo ENOTFOUND {1}", "имени {1} нет"],
    ["getaddrinfo EAI_AGAIN {1}", "серверы имён не ответили об имени {1}"],
    ["connect ECONNREFUSED {1}", "{1} отклоняет соединение"],
    ["it names a backing file", "он ссылается на базовый файл"],
    ["it is encrypted", "он зашифрован"],
    ["its data is in another file", "его данные в другом файле"],
    ["it has unknown features", "у него неизвестные свойства"],
  ],
};
