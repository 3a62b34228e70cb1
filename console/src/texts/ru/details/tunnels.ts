/** Details of errors of tunnels, and why a tunnel does not work, in Russian. */
import type { Table } from "../../translate.ts";

export const tunnels: Table = {
  sentences: [
    ["Tunnel {1} does not exist in network {2}.", "Туннеля {1} нет в сети {2}."],
    ["Id: tunnel {1} does not exist in this network.", "Id: туннеля {1} нет в этой сети."],
    ["Id {1} is already used by Tunnels[{2}].", "Id {1} уже занят: Tunnels[{2}]."],
    ["Type: tunnel {1} is {2} and cannot change to {3}.", "Type: тип туннеля {1} — {2}, сменить его на {3} нельзя."],
    ["This host has no engine for tunnels of type {1}.", "На этом хосте нет движка для туннелей типа {1}."],
    ["No UDP port for WireGuard is free.", "Свободных портов UDP для WireGuard нет."],

    // Why a tunnel does not work.
    ["The peer could not be authenticated.", "Не удалось проверить подлинность другой стороны."],
    ["The peers have no proposal in common.", "У сторон нет общего набора алгоритмов."],
    ["The peers want different networks.", "Стороны хотят разные сети."],
    ["The peer does not answer.", "Другая сторона не отвечает."],
    [
      "The peer of tunnel {1} has no key yet. Create a configuration with keys for it, or enter its public key (PeerPublicKey).",
      "У другой стороны туннеля {1} ещё нет ключа. Создайте для неё конфигурацию с ключами или укажите её открытый ключ (PeerPublicKey).",
    ],
    [
      "The router did not report the status of tunnel {1} within 2 s.",
      "Маршрутизатор не сообщил состояние туннеля {1} за 2 с.",
    ],
    ["charon does not respond.", "charon не отвечает."],
    ["charon is not running.", "charon не работает."],
    ["The peer is not configured on the device yet.", "Другая сторона ещё не настроена на устройстве."],
    [
      "No handshake from the peer yet: it has not connected, or it uses other keys than configured here.",
      "Рукопожатия с другой стороной ещё не было: она не подключалась или использует не те ключи, что указаны здесь.",
    ],
    [
      "No reply from {1}: the peer is not reachable, or the keys configured there and here differ.",
      "{1} не отвечает: другая сторона недоступна, или ключи там и здесь не совпадают.",
    ],
    ["No reply from the peer.", "Ответа на запросы нет."],
    ["{1} has no address: {2}.", "У {1} нет адреса: {2}."],
    ["Could not send packets to the peer.", "Не удалось отправить пакеты другой стороне."],
    ["The host could not install the tunnel: {1}.", "Хост не смог установить туннель: {1}."],
    ["No tunnel is configured for this peer.", "Для этой другой стороны туннель не настроен."],
    [
      "The peer refuses the shared key or the identities.",
      "Другая сторона не принимает общий ключ или идентификаторы.",
    ],
    ["The peer uses another shared key.", "У другой стороны другой общий ключ."],
    [
      "The peer identifies itself as {1}, for which no tunnel is configured.",
      "Идентификатор другой стороны — {1}, для него туннель не настроен.",
    ],
    ["The peer identifies itself differently than expected.", "Идентификатор другой стороны не тот, который ожидался."],
    ["The peer identifies itself as {1}.", "Идентификатор другой стороны — {1}."],
    ["The peer offers other encryption settings.", "Другая сторона предлагает другие алгоритмы шифрования."],
    ["The peer offers {1}.", "Другая сторона предлагает {1}."],
    [
      "The peer accepts none of the encryption settings, or has no tunnel configured for us.",
      "Другая сторона не принимает ни один из алгоритмов шифрования, или туннель к нам у неё не настроен.",
    ],
    ["The peer wants another Diffie-Hellman group.", "Другой стороне нужна другая группа Диффи — Хеллмана."],
    ["The peer uses the other version of IKE.", "У другой стороны другая версия IKE."],
    [
      "The peer has other networks configured for this tunnel.",
      "У другой стороны для этого туннеля настроены другие сети.",
    ],
    ["The peer wants {1} on its side and {2} on ours.", "Другая сторона хочет {1} на своей стороне и {2} на нашей."],
    [
      "The peer agrees only to {1} on its side and {2} on ours.",
      "Другая сторона согласна только на {1} на своей стороне и {2} на нашей.",
    ],
    [
      "Configured here: our identity is {1}, the peer's is {2}.",
      "Настроено здесь: наш идентификатор — {1}, другой стороны — {2}.",
    ],
    ["Configured here: IKEv{1} with {2}, ESP with {3}.", "Настроено здесь: IKEv{1} с {2}, ESP с {3}."],
    [
      "Configured here: {1} on our side and {2} on the peer's.",
      "Настроено здесь: {1} на нашей стороне и {2} на другой.",
    ],
    ["Brume contacts {1} on UDP 500 and 4500.", "Brume обращается к {1} по UDP 500 и 4500."],
    [
      "{1} is a private address without NAT on the way to the peer (BRUME_NAT): the peer needs a route to it.",
      "{1} — частный адрес, и на пути к другой стороне нет NAT (BRUME_NAT): ей нужен маршрут к этому адресу.",
    ],
    [
      "The edge is behind NAT at {1}, which is a private address too: a peer on the internet cannot reach it.",
      "Внешний адрес сети скрыт за NAT на {1}, а это тоже частный адрес: из интернета он недоступен.",
    ],
    [
      "Forward {a?} on the router before the host to {1}, and let the operator set BRUME_PUBLIC_ADDRESS.",
      "Перенаправьте {a?} на маршрутизаторе перед хостом на {1}; оператор должен указать BRUME_PUBLIC_ADDRESS.",
    ],
    [
      "The edge is behind NAT: the peer reaches it at {1} ({a?}), not at {2}, and must use that address and NAT traversal, as in the configuration for the peer.",
      "Внешний адрес сети скрыт за NAT: для другой стороны это {1} ({a?}), а не {2}. Ей нужны этот адрес и обход NAT, как в конфигурации для неё.",
    ],
    [
      "The edge is behind NAT, and {a?} at {1} belong to another program of the host: the peer cannot reach this edge.",
      "Внешний адрес сети скрыт за NAT, а порты {a?} на {1} занимает другая программа хоста: другая сторона не может подключиться.",
    ],
    [
      "The edge is behind NAT, and {a?} at {1} lead to another network: the peer cannot reach this edge.",
      "Внешний адрес сети скрыт за NAT, а порты {a?} на {1} ведут в другую сеть: другая сторона не может подключиться.",
    ],
    [
      "Set PeerEndpoint to the peer's address, so that the edge initiates, or use WireGuard, where each network has its own port.",
      "Укажите в PeerEndpoint адрес другой стороны, чтобы соединение начинала сеть, или используйте WireGuard: там у каждой сети свой порт.",
    ],
    [
      "Set PeerEndpoint, so that the edge initiates, or let the operator choose other ports (BRUME_WIREGUARD_PORT).",
      "Укажите PeerEndpoint, чтобы соединение начинала сеть; или оператор может выбрать другие порты (BRUME_WIREGUARD_PORT).",
    ],
  ],
  phrases: [
    ["UDP 500 and 4500", "UDP 500 и 4500"],
    ["must be one of {1} for a tunnel of type {2}", "для туннеля типа {2} допустимо одно из: {1}"],
    [
      "must be IPv4 blocks such as 10.0.0.0/24, joined by commas",
      "нужны блоки IPv4 через запятую, например 10.0.0.0/24",
    ],
    [
      "must be the IPv4 address or the host name of the peer, or any",
      "нужен адрес IPv4 или имя хоста другой стороны, или any",
    ],
    [
      "must be an IPv4 address or host name and a port, such as vpn.example.com:51820",
      "нужен адрес IPv4 или имя хоста и порт, например vpn.example.com:51820",
    ],
    ["must be an IPv4 address, a host name or user@host", "нужен адрес IPv4, имя хоста или user@host"],
    [
      "must be a host name or user@host if PeerEndpoint is any",
      "если PeerEndpoint — any, нужно имя хоста или user@host",
    ],
    ["must be inside {1}, but {2} is not", "блоки должны быть внутри {1}, а {2} — нет"],
    ["must be blocks that hosts can use, but {1} is reserved", "нужны блоки, доступные хостам, а {1} зарезервирован"],
    ["must have at most {1} blocks", "блоков — не больше {1}"],
    ["must be the base64 of 32 bytes", "нужны 32 байта в base64"],
    ["is required if PeerEndpoint is any", "обязательное поле, если PeerEndpoint — any"],
    ["1 to 64 characters", "от 1 до 64 знаков"],
    ["the blocks behind the peer", "блоки за другой стороной"],
    ["the address or host name of the peer, or any", "адрес или имя хоста другой стороны, или any"],
    ["must not be AesGcm with IkeVersion 1, which does not support it", "AesGcm недоступен с IkeVersion 1"],
    [
      "must be the public key of the peer, but is that of this network",
      "нужен открытый ключ другой стороны, а это ключ этой сети",
    ],
    [
      "must be an address of the peer, but {1} belongs to this network",
      "нужен адрес другой стороны, а {1} принадлежит этой сети",
    ],
    [
      "must be unique in the network, but is the same in Tunnels[{1}]",
      "значение должно быть уникальным в сети, а у Tunnels[{1}] оно такое же",
    ],
    [
      "must be unique for its PeerEndpoint (list several networks of one peer in PeerNetwork), but is the same in Tunnels[{1}]",
      "значение должно быть уникальным для PeerEndpoint (несколько сетей одной стороны перечислите в PeerNetwork), а у Tunnels[{1}] оно такое же",
    ],
    [
      "must be the same as in Tunnels[{1}], which has the same identities on both sides, by which IKE selects the key",
      "значение должно совпадать с Tunnels[{1}]: там те же идентификаторы обеих сторон, а по ним IKE выбирает ключ",
    ],
    [
      "must be the same as in Tunnels[{1}], which has the same PeerEndpoint, by which IKEv1 selects the key",
      "значение должно совпадать с Tunnels[{1}]: там тот же PeerEndpoint, а по нему IKEv1 выбирает ключ",
    ],
    ["must not overlap the network's own {1}", "не может пересекаться с блоком самой сети {1}"],
    ["must not overlap that of Tunnels[{1}]", "не может пересекаться с блоками Tunnels[{1}]"],
  ],
};
