/** Тексты полей, которые форма берёт из контракта. */
import { algorithms, type FieldText, groupNames } from "../en/fields.ts";

export const fields: Readonly<Record<string, FieldText>> = {
  Labels: { name: "Метки" },
  HostName: {
    name: "Имя хоста",
    hint: "Имя гостя в его собственной системе. По умолчанию образуется из имени сервера.",
  },
  IsHighPerformance: {
    name: "Повышенная производительность",
    hint: "Двойная доля процессора, пока серверы соперничают за процессоры хоста.",
  },
  IsProtected: { name: "Защита от удаления и пересоздания", hint: "По умолчанию нет." },
  isBackupActive: { name: "Ежедневная копия", hint: "По умолчанию нет." },
  BackupPeriod: { name: "Сколько дней хранить копии", hint: "По умолчанию 7." },
  DCLocation: { name: "Расположение", hint: "По умолчанию как у выбранной сети или первое." },
  NetworkBandwidth: { name: "Скорость", unit: "Mbit/s", hint: "Предел подключения к сети, в каждую сторону." },
  NetworkIP: { name: "Адрес", hint: "Свободный адрес сети. По умолчанию наименьший." },
  WaitFor: {
    name: "Завершить, когда",
    hint: "По умолчанию, когда сервер работает.",
    values: { Power: "Сервер работает", Ssh: "SSH отвечает на порту 22", Guest: "Первая загрузка закончилась" },
  },
  IsDHCP: { name: "DHCP", hint: "Подключённые серверы получают адрес по DHCP. По умолчанию да." },
  Mtu: { name: "MTU", unit: "bytes", hint: "Наибольший пакет внутри туннеля. По умолчанию 1400." },
  EncryptionType: { name: "Шифрование", hint: "По умолчанию AES-256.", values: algorithms.encryption },
  LocalNetwork: {
    name: "Сети с этой стороны",
    hint: "Блоки этой сети, доступные другой стороне. По умолчанию вся сеть.",
  },
  LocalIdentificator: { name: "Идентификатор этой стороны", hint: "По умолчанию внешний адрес сети." },
  IkeVersion: { name: "Версия IKE", hint: "По умолчанию 2. Версия 1 работает в режиме main." },
  DhGroup: {
    name: "Группа Диффи — Хеллмана",
    hint: "По умолчанию MODP-2048 (группа 14).",
    values: groupNames("группа"),
  },
  Digest: { name: "Хеш", hint: "По умолчанию SHA-256, с 3DES — SHA-1.", values: algorithms.digest },
  PerfectForwardSecrecy: { name: "Совершенная прямая секретность", hint: "По умолчанию да." },
  KeepAlive: { name: "Keep-alive", unit: "seconds", hint: "0 — выключено. По умолчанию 25." },
  TechName: { name: "Техническое имя", hint: "По умолчанию имя, в котором другие знаки заменены дефисами." },
  RateLimit: { name: "Предел запросов" },
  Requests: { name: "Запросы", hint: "Сколько запросов токен может отправить за это время." },
  Seconds: {
    name: "Время",
    unit: "seconds",
    hint: "Время, через которое токен снова может отправить столько же запросов.",
  },
  Secret: {
    name: "Секрет",
    hint: "Ключ подписи. По умолчанию создаётся и показывается один раз, после создания вебхука.",
  },
};
