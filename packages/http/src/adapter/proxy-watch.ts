import { warnOnce } from '@sluice/core'

/** A framework's names for its proxy settings, for warnings. */
interface ProxySettings {
  /** The setting that enables trust in proxies: `'trust proxy'`. */
  readonly trust: string
  /** The advice for one proxy: `behind one proxy, call app.set('trust proxy', 1)`. */
  readonly trustOne: string
  /** The setting for the number of trusted proxies. @default `trust` */
  readonly count?: string
  /** The advice for several proxies. */
  readonly trustAll: string
}

/** Number of requests in one sample, and how many forwarded lists must differ in it. */
const window = 500
const differentLists = 20
const nearlyAll = 0.95

/** Length of the part of a forwarded list that is compared. */
const listStart = 64

/**
 * Detects likely mistakes in the proxy settings. If a proxy is not trusted, or only one of two is,
 * all clients share one address, and therefore one limit. Without a proxy anybody can send the
 * header, so only the user knows what to trust.
 */
export class ProxyWatch {
  readonly #settings: ProxySettings
  #isDone = false
  #seen = 0
  /** Address of a sample's first request: if one address sends nearly all, it is this one. */
  #address: string | undefined
  #ofAddress = 0
  readonly #lists = new Set<string>()

  constructor(settings: ProxySettings) {
    this.#settings = settings
  }

  /**
   * Compares a request's X-Forwarded-For with the address that the framework derived from it.
   * @param trust falsy if no proxy is trusted, and `true` if every address is
   * @returns the address
   */
  see(
    forwarded: string | readonly string[] | undefined,
    address: string | undefined,
    trust: unknown,
  ): string | undefined {
    if (forwarded === undefined) return address
    const list = String(forwarded)
    if (!trust) warnOnce(untrusted(this.#settings))
    else if (!this.#isDone) this.#count(list, address)
    // A proxy that overwrites the header leaves one address in it: then trusting it is fine.
    if (trust === true && list.includes(',')) warnOnce(firstAddress(this.#settings))
    return address
  }

  #count(forwarded: string, address: string | undefined): void {
    if (this.#seen === 0) this.#address = address
    this.#seen += 1
    if (address === this.#address) this.#ofAddress += 1
    // Copied: a slice would keep the whole header in memory.
    if (this.#lists.size < differentLists) {
      this.#lists.add(Buffer.from(forwarded.slice(0, listStart)).toString())
    }
    if (this.#seen >= window) this.#judge()
  }

  #judge(): void {
    const isOne = this.#ofAddress >= nearlyAll * this.#seen
    if (isOne && this.#lists.size >= differentLists) {
      warnOnce(oneAddress(this.#settings))
      this.#isDone = true
    }
    this.#seen = 0
    this.#ofAddress = 0
    this.#address = undefined
    this.#lists.clear()
  }
}

function untrusted({ trust, trustOne }: ProxySettings): string {
  return (
    `a request came with X-Forwarded-For, but ${trust} is off, so the address of the connection is counted; ` +
    `${trustOne}; without a proxy, remove the header`
  )
}

function firstAddress({ trust, trustAll }: ProxySettings): string {
  return (
    `X-Forwarded-For came with several addresses, and ${trust} is true, so the first one is counted, which any client can forge; ` +
    `${trustAll}, or have your proxy overwrite the header`
  )
}

function oneAddress({ trust, count = trust, trustAll }: ProxySettings): string {
  return (
    `nearly all requests with X-Forwarded-For came from one address, although the forwarded addresses differ: ${count} may trust ` +
    `fewer proxies than there are, so that all clients share one limit; ${trustAll}. A single very busy client looks the same; ` +
    `in that case ignore this`
  )
}

/** A request behind more proxies than anybody has, all with a documentation address. */
const farClient = {
  headers: { 'x-forwarded-for': Array(64).fill('192.0.2.1').join(', ') },
  socket: { remoteAddress: '192.0.2.1' },
}

const trusting = new WeakMap<object, boolean>()

/**
 * Returns whether a Fastify application trusts every address. Fastify does not expose `trustProxy`,
 * so this checks how its requests resolve addresses.
 */
export function fastifyTrustsAll(request: object): boolean {
  const prototype: object = Object.getPrototypeOf(request)
  const known = trusting.get(prototype)
  if (known !== undefined) return known
  const { ips }: { ips?: readonly string[] } = Object.create(prototype, {
    raw: { value: farClient },
  })
  const trustsAll = ips?.length === 65
  trusting.set(prototype, trustsAll)
  return trustsAll
}
