/** A kind of client, and its behaviour. */
interface Kind {
  readonly name: string
  readonly clients: number
  /** Times between the bursts of a client. */
  readonly bursts: number
  readonly burstEverySeconds: number
  /** Requests of a burst, and the time between them. */
  readonly requests: number
  readonly everySeconds: number
  readonly target: string
}

/** 25 hours of an API: nearly all clients are slow, some send bursts, one scrapes. */
const kinds: readonly Kind[] = [
  {
    ...{ name: 'reader', clients: 1_700, bursts: 10, burstEverySeconds: 360 },
    ...{ requests: 1, everySeconds: 1, target: 'GET /articles/' },
  },
  {
    ...{ name: 'app', clients: 280, bursts: 5, burstEverySeconds: 3_600 },
    ...{ requests: 8, everySeconds: 1, target: 'GET /users/' },
  },
  {
    ...{ name: 'importer', clients: 19, bursts: 1, burstEverySeconds: 0 },
    ...{ requests: 30, everySeconds: 2, target: 'POST /items/' },
  },
  {
    ...{ name: 'scraper', clients: 1, bursts: 1, burstEverySeconds: 0 },
    ...{ requests: 4_800, everySeconds: 0.25, target: 'GET /articles/' },
  },
]

const begin = Date.parse('2026-11-20T00:00:00Z')
/** The last client starts after this many seconds, so that the log is longer than a day. */
const lastBeginSeconds = 75_600
const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')

/** Facts about the log that the tools must find. */
export interface GroundTruth {
  readonly requests: number
  readonly identities: number
  /** Lines that are not requests: someone used TLS on the HTTP port. */
  readonly unreadable: number
  readonly scraper: string
  /** Maximum requests of a client in 1 s, 10 s, 1 min and 1 h, by kind. */
  readonly rates: Readonly<Record<string, readonly number[]>>
}

export const groundTruth: GroundTruth = {
  requests: 1_700 * 10 + 280 * 5 * 8 + 19 * 30 + 4_800,
  identities: 2_000,
  unreadable: 2,
  scraper: '203.0.113.66',
  rates: {
    reader: [1, 1, 1, 10],
    app: [1, 8, 8, 8],
    importer: [1, 5, 30, 30],
    scraper: [4, 40, 240, 4_800],
  },
}

/** Generates the log in nginx's `combined` format, always the same. */
export function generateLog(): string {
  const lines: { readonly second: number; readonly text: string }[] = []
  let number = 0
  for (const kind of kinds) {
    for (let client = 0; client < kind.clients; client += 1) {
      const address = kind.name === 'scraper' ? groundTruth.scraper : addressOf(number)
      // The clients of a kind are spread over the day, in no apparent order.
      const first =
        client === kind.clients - 1 ? lastBeginSeconds : (number * 7_919) % lastBeginSeconds
      for (let burst = 0; burst < kind.bursts; burst += 1) {
        for (let request = 0; request < kind.requests; request += 1) {
          const second = first + burst * kind.burstEverySeconds + request * kind.everySeconds
          lines.push({ second, text: lineOf(address, second, `${kind.target}${request % 50}`) })
        }
      }
      number += 1
    }
  }
  for (const second of [4_000, 40_000]) {
    const text = `198.51.100.9 - - [${timeOf(second)}] "\\x16\\x03\\x01" 400 150 "-" "-"`
    lines.push({ second, text })
  }
  lines.sort((one, other) => one.second - other.second)
  return lines.map(({ text }) => `${text}\n`).join('')
}

function addressOf(number: number): string {
  return `100.64.${Math.floor(number / 250)}.${(number % 250) + 1}`
}

function lineOf(address: string, second: number, request: string): string {
  return `${address} - - [${timeOf(second)}] "${request} HTTP/1.1" 200 512 "-" "Mozilla/5.0"`
}

/** `20/Nov/2026:00:00:00 +0000`: whole seconds, as nginx and Apache write them. */
function timeOf(second: number): string {
  const iso = new Date(begin + Math.floor(second) * 1_000).toISOString()
  const month = months[Number(iso.slice(5, 7)) - 1]
  return `${iso.slice(8, 10)}/${month}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`
}
