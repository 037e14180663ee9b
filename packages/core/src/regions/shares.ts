import type { Store } from '../model/store.ts'
import { invalid, isOptions, quote } from '../options/options.ts'
import { million, partOf } from '../policy/policy.ts'

/** The guaranteed shares of all regions, in millionths, so that they add up exactly. */
export class Shares {
  readonly region: string
  readonly #millionths: ReadonlyMap<string, number>

  /** @throws SluiceError if they add up to more than 1, or do not name the region */
  constructor(region: string, shares: unknown) {
    this.region = region
    if (!isOptions(shares)) {
      throw invalid({ option: 'shares' }, shares, 'an object, as in { eu: 0.4, us: 0.4 }')
    }
    this.#millionths = new Map(
      Object.entries(shares).map(([name, share]) => [regionName(name), millionthsOf(name, share)]),
    )
    if (!this.#millionths.has(region)) {
      const names = [...this.#millionths.keys()].map(quote).join(', ') || 'none'
      const legal = `one of the regions in shares (${names})`
      throw invalid({ option: 'region' }, region, legal)
    }
    const sum = [...this.#millionths.values()].reduce((all, one) => all + one, 0)
    if (sum > million) {
      throw invalid({ option: 'the sum of shares' }, sum / million, 'at most 1')
    }
  }

  /** The share of this region, above 0. */
  get own(): number {
    return (this.#millionths.get(this.region) ?? 0) / million
  }

  /** The same string for the same shares, in every process. */
  get text(): string {
    return JSON.stringify([...this.#millionths].sort(([one], [other]) => (one < other ? -1 : 1)))
  }

  /** Returns the part of a limit that is guaranteed to this region. */
  guaranteed(limit: number): number {
    return partOf(limit, this.#millionths.get(this.region) ?? 0)
  }

  /** Returns the part of a limit that is not guaranteed to any region, from which they borrow. */
  pool(limit: number): number {
    let left = limit
    for (const millionths of this.#millionths.values()) left -= partOf(limit, millionths)
    return left
  }
}

/** The stores and shares of a region. */
export interface RegionStores {
  readonly local: Store
  readonly global: Store
  readonly shares: Shares
}

function millionthsOf(name: string, share: unknown): number {
  const millionths = typeof share === 'number' ? Math.round(share * million) : 0
  if (millionths >= 1 && millionths <= million) return millionths
  throw invalid({ option: `shares.${name}` }, share, 'a number from 0.000001 to 1')
}

/** Region names appear in logs and metrics. */
function regionName(name: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/.test(name)) return name
  const legal = '1 to 32 characters of A-Z a-z 0-9 . _ -, the first a letter or a digit'
  throw invalid({ option: 'a region of shares' }, name, legal)
}
