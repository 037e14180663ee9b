import type { Replayed } from '../replay/replay.ts'
import { CliError } from '../terminal/exit-codes.ts'

/** The effect of a policy change on the requests of a log: `sluice diff --json`. */
export interface PolicyDiff {
  readonly kind: 'sluice-diff'
  readonly version: 1
  readonly requests: number
  readonly clients: number
  /** Requests refused by the old file, and by the new file. */
  readonly deniedBefore: number
  readonly deniedAfter: number
  /** Requests refused only by the new file. */
  readonly newlyDenied: number
  /** Requests refused by the old file and allowed by the new file. */
  readonly newlyAllowed: number
  /** Requests that obedient clients do not send, because they wait; not in any other count. */
  readonly heldBackBefore: number
  readonly heldBackAfter: number
  /** Clients refused only by the new file. */
  readonly clientsNewlyDenied: number
  /** Clients refused only by the old file. */
  readonly clientsNewlyAllowed: number
  /** The clients with the most requests refused only by the new file, at most 100. */
  readonly mostDenied: readonly Readonly<ChangedClient>[]
}

interface ChangedClient {
  readonly client: string
  deniedBefore: number
  deniedAfter: number
}

const maxListed = 100
const maxClients = 1_000_000

/** Compares two replays of one log, which run one after the other. */
export class DiffTally {
  /** One number per request: 1 if the old file refuses it. */
  #before = new Uint8Array(1 << 16)
  #requestsBefore = 0
  #requests = 0
  #newlyDenied = 0
  #newlyAllowed = 0
  #heldBackBefore = 0
  #heldBackAfter = 0
  readonly #clients = new Map<string, ChangedClient>()

  before({ client, result }: Replayed): void {
    if (this.#requestsBefore === this.#before.length) {
      const larger = new Uint8Array(this.#before.length * 2)
      larger.set(this.#before)
      this.#before = larger
    }
    if (result === 'heldBack') this.#heldBackBefore += 1
    const isDenied = result === 'denied'
    this.#before[this.#requestsBefore] = isDenied ? 1 : 0
    this.#requestsBefore += 1
    const counts = this.#countsOf(client)
    if (isDenied && counts) counts.deniedBefore += 1
  }

  after({ client, result }: Replayed): void {
    const isDenied = result === 'denied'
    const wasDenied = this.#before[this.#requests] === 1
    this.#requests += 1
    if (isDenied && !wasDenied) this.#newlyDenied += 1
    if (result === 'heldBack') this.#heldBackAfter += 1
    else if (!isDenied && wasDenied) this.#newlyAllowed += 1
    const counts = this.#countsOf(client)
    if (isDenied && counts) counts.deniedAfter += 1
  }

  /** @throws CliError if the log has changed between the two replays */
  get diff(): PolicyDiff {
    if (this.#requests !== this.#requestsBefore) {
      throw new CliError('the log grew while it was being read; copy it, and compare on the copy')
    }
    const clients = [...this.#clients.values()]
    const sum = (count: (client: ChangedClient) => number): number =>
      clients.reduce((all, client) => all + count(client), 0)
    const growth = ({ deniedBefore, deniedAfter }: ChangedClient) => deniedAfter - deniedBefore
    return {
      kind: 'sluice-diff',
      version: 1,
      requests: this.#requests,
      clients: clients.length,
      deniedBefore: sum(({ deniedBefore }) => deniedBefore),
      deniedAfter: sum(({ deniedAfter }) => deniedAfter),
      newlyDenied: this.#newlyDenied,
      newlyAllowed: this.#newlyAllowed,
      heldBackBefore: this.#heldBackBefore,
      heldBackAfter: this.#heldBackAfter,
      clientsNewlyDenied: sum((each) => Number(each.deniedBefore === 0 && growth(each) > 0)),
      clientsNewlyAllowed: sum((each) => Number(each.deniedAfter === 0 && growth(each) < 0)),
      mostDenied: clients
        .filter((each) => growth(each) > 0)
        .sort((one, other) => growth(other) - growth(one) || (one.client < other.client ? -1 : 1))
        .slice(0, maxListed),
    }
  }

  /** The two files may identify clients by different keys: then each has its own clients. */
  #countsOf(client: string): ChangedClient | undefined {
    const known = this.#clients.get(client)
    if (known || this.#clients.size >= maxClients) return known
    const counts = { client, deniedBefore: 0, deniedAfter: 0 }
    this.#clients.set(client, counts)
    return counts
  }
}

export interface Bound {
  readonly text: string
  /** Returns the compared value, and whether it exceeds the bound. */
  judge(diff: PolicyDiff): { readonly found: string; readonly isExceeded: boolean }
}

const metrics: Readonly<
  Record<string, (diff: PolicyDiff) => { readonly part: number; readonly all: number }>
> = {
  denied: ({ newlyDenied, requests }) => ({ part: newlyDenied, all: requests }),
  allowed: ({ newlyAllowed, requests }) => ({ part: newlyAllowed, all: requests }),
  clients: ({ clientsNewlyDenied, clients }) => ({ part: clientsNewlyDenied, all: clients }),
}

/** Parses `clients>20` or `denied>0.1%`. @throws CliError if it is not a bound */
export function boundOf(text: string): Bound {
  const [, name = '', limit = '', percent] =
    /^\s*(\w+)\s*>\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(text) ?? []
  const metric = Object.hasOwn(metrics, name) ? metrics[name] : undefined
  if (!metric) {
    throw new CliError(
      `--fail-if ${text} must be a bound on denied, allowed or clients, such as 'clients>20' or 'denied>0.1%'`,
    )
  }
  return {
    text: text.trim(),
    judge(diff) {
      const { part, all } = metric(diff)
      const found = percent && all > 0 ? (part / all) * 100 : part
      return {
        found: percent ? `${Number(found.toFixed(3))}%` : String(found),
        isExceeded: found > Number(limit),
      }
    },
  }
}
