import { randomId } from '../ledger/grants.ts'
import type { CountedKey } from '../model/check.ts'
import type { Policy } from '../model/policy.ts'
import type { RegionReport, RegionUse } from '../model/region.ts'
import type { ManualChange } from '../model/store.ts'
import { warnOnce } from '../options/warn.ts'
import { definePolicy } from '../policy/policy.ts'
import { Alarm, monotonicMs } from '../waiting/timers.ts'
import type { Central } from './central.ts'

const intervalMs = 1_000
const aliveMs = 10_000
/** A region that is cut off for longer misses notices. */
const noticeMs = 3_600_000
const maxNotices = 200

/**
 * Small posts that the processes of all regions exchange in the global store, once a second: their
 * usage, and the resets and blocks of the last hour.
 */
export class RegionBoard {
  readonly #central: Central
  readonly #member = String(randomId())
  /** Each notice is handled by one process of a region: the one that takes the only unit. */
  readonly #once: Policy = definePolicy(
    { name: 'sluice-notices', limit: 1, window: 2 * noticeMs, algorithm: 'fixed-window' },
    'notices',
  )
  readonly #policies = new Map<string, Policy>()
  #seen: Set<string> = new Set()
  #others = new Map<string, { post: Post; atMs: number }>()
  #notices: readonly (Omit<Notice, 'ageMs'> & { readonly atMs: number })[] = []
  readonly #alarm = new Alarm(() => {
    this.#alarm.within(intervalMs)
    void this.#share()
  })
  #isSharing = false
  #isClosed = false

  constructor(central: Central) {
    this.#central = central
  }

  /** Starts reading the board, for notices about the policies of the checks. */
  open(checks: readonly CountedKey[]): void {
    const isFirst = this.#policies.size === 0 && !this.#isClosed
    if (isFirst && this.#central.stores.global.fleet?.shareReport) this.#alarm.within(intervalMs)
    for (const { policy } of checks) this.#policies.set(policy.id, policy)
  }

  /** Posts a reset or a block for the other regions. They receive it even if this post fails. */
  tell({ op, checks }: ManualChange): void {
    const { local } = this.#central.stores
    const atMs = monotonicMs()
    const added = checks.map(({ policy, key, digest, ...check }) => {
      // A store that finds keys by their digest spares the global store the identity.
      const known = digest ?? (local.keys?.keyFor && local.keys.digestOf?.(key))
      const identity = known === undefined ? { key } : { digest: known }
      const cost = 'blockMs' in check ? check.blockMs : 1
      return { id: String(randomId()), op, policy: policy.id, cost, ...identity, atMs }
    })
    this.#notices = [...this.#notices, ...added].slice(-maxNotices)
    void this.#share()
  }

  reports(): readonly RegionReport[] {
    const { region } = this.#central.stores.shares
    const now = monotonicMs()
    const own = { region, processes: 1, ...this.#central.use() }
    const regions = new Map<string, RegionReport>([[region, own]])
    for (const { post, atMs } of this.#others.values()) {
      if (now - atMs > aliveMs) continue
      const known = regions.get(post.region)
      regions.set(post.region, {
        region: post.region,
        share: known?.share ?? post.usage.share,
        processes: (known?.processes ?? 0) + 1,
        fromShare: (known?.fromShare ?? 0) + post.usage.fromShare,
        borrowed: (known?.borrowed ?? 0) + post.usage.borrowed,
        held: (known?.held ?? 0) + post.usage.held,
      })
    }
    return [...regions.values()].sort((one, other) => (one.region < other.region ? -1 : 1))
  }

  close(): void {
    this.#isClosed = true
    this.#alarm.stop()
  }

  /** Never rejects: the next post has everything that this one had. */
  async #share(): Promise<void> {
    if (this.#isSharing) return
    this.#isSharing = true
    const { shares, global } = this.#central.stores
    const now = monotonicMs()
    this.#notices = this.#notices.filter(({ atMs }) => now - atMs < noticeMs)
    const notices = this.#notices.map(({ atMs, ...notice }) => ({ ...notice, ageMs: now - atMs }))
    const post: Post = {
      region: shares.region,
      shares: shares.text,
      member: this.#member,
      sequence: now,
      usage: this.#central.use(),
      notices,
    }
    try {
      const texts = await global.fleet?.shareReport?.({
        topic: 'regions',
        member: this.#member,
        text: JSON.stringify(post),
        ttlMs: notices.length > 0 ? noticeMs : aliveMs,
      })
      await this.#read((texts ?? []).flatMap(decodePost))
    } catch {
      // The global or the local store is unavailable: notices stay on the board for an hour.
    } finally {
      this.#isSharing = false
    }
  }

  async #read(posts: readonly Post[]): Promise<void> {
    const { region, text: shares } = this.#central.stores.shares
    const atMs = monotonicMs()
    const before = this.#others
    this.#others = new Map()
    for (const post of posts) {
      const known = before.get(post.member)
      const isSilent = known?.post.sequence === post.sequence
      this.#others.set(post.member, isSilent ? known : { post, atMs })
      if (post.shares === shares) continue
      warnOnce(
        `regions '${post.region}' and '${region}' have different shares, so the sum may exceed the limits; use the same shares in all processes`,
        `shares of ${post.region}`,
      )
    }
    const there = posts.filter((post) => post.region !== region).flatMap(({ notices }) => notices)
    this.#seen = new Set(there.map(({ id }) => id).filter((id) => this.#seen.has(id)))
    for (const notice of there.sort((one, other) => other.ageMs - one.ageMs)) {
      if (!this.#seen.has(notice.id)) await this.#follow(notice)
    }
  }

  /** Repeats in this region what another one has done. */
  async #follow({ id, op, key, digest, cost, ageMs, ...named }: Notice): Promise<void> {
    const policy = this.#policies.get(named.policy)
    const identity = digest ?? key
    // It is read again, until a limiter of this process has used the policy.
    if (!policy || identity === undefined) return
    const left = op === 'block' ? Math.ceil(cost - ageMs) : cost
    if (op === 'reset' || left > 0) {
      const { local } = this.#central.stores
      const own = { policy: this.#once, key: id, cost: 1, limit: 1 }
      const [claim] = await local.apply('consume', [own])
      const place = { policy, key: identity, limit: policy.limit, cost: 1, blockMs: left }
      const check = digest === undefined ? place : { ...place, digest }
      if (claim?.allowed) await local.change({ op, checks: [check] })
    }
    this.#seen.add(id)
  }
}

/** A reset or a block that the other regions must repeat. */
interface Notice {
  readonly id: string
  readonly op: 'reset' | 'block'
  readonly policy: string
  /** The key, or its digest if the stores find keys by digest. */
  readonly key?: string | undefined
  readonly digest?: string | undefined
  /** Duration of a block (ms); 1 for a reset. */
  readonly cost: number
  /** Time (ms) since it was first posted. */
  readonly ageMs: number
}

/** The post of one process for the processes of all regions. */
interface Post {
  readonly region: string
  readonly shares: string
  readonly member: string
  /** Differs in each post of a process, so that the last post of a dead process is recognised. */
  readonly sequence: number
  readonly usage: RegionUse
  readonly notices: readonly Notice[]
}

/** Parses a post; empty for an invalid one, such as one of a later version. */
function decodePost(text: string): readonly Post[] {
  try {
    const post: Post = JSON.parse(text)
    const { region, shares, member, sequence, usage, notices } = post
    const amounts = [sequence, usage.share, usage.fromShare, usage.borrowed, usage.held]
    const isValid = [region, shares, member].every(isText) && amounts.every(isAmount)
    return isValid ? [{ ...post, notices: notices.filter(isNotice) }] : []
  } catch {
    return []
  }
}

function isNotice({ id, op, policy, key, digest, cost, ageMs }: Notice): boolean {
  const isKnown = op === 'reset' || op === 'block'
  return isKnown && [id, policy, digest ?? key].every(isText) && [cost, ageMs].every(isAmount)
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0
}
