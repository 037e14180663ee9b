import { warnOnce } from '@sluice/core'

/** The proxy settings of a framework, in its own words, for warnings. */
interface ProxySettings {
  /** The setting that switches trust in proxies on: `'trust proxy'`. */
  readonly trust: string
  /** The advice for one proxy: `behind one proxy call app.set('trust proxy', 1)`. */
  readonly trustOne: string
  /** The setting that says how many proxies are trusted. @default `trust` */
  readonly count?: string
  /** The advice for several proxies. */
  readonly trustAll: string
}

/** Number of requests of one look, and of the forwarded lists that must differ in it. */
const window = 500
const differentLists = 20
const nearlyAll = 0.95

/** Length of the part of a forwarded list that tells it from others. */
const listStart = 64

/**
 * Detects a likely mistake in the proxy settings. If a proxy is not trusted, or only one of two is,
 * all clients share one address, and so one limit. Without a proxy anybody could send the header,
 * so only the user knows what to trust.
 */
export class ProxyWatch {
  readonly #settings: ProxySettings
  #isDone = false
  #seen = 0
  /** The address of the first request of a window: one that takes nearly all is this one. */
  #address: string | undefined
  #ofAddress = 0
  readonly #lists = new Set<string>()

  constructor(settings: ProxySettings) {
    this.#settings = settings
  }

  /**
   * Compares a request's X-Forwarded-For with the address that the framework made of it.
   * @param trust falsy if no proxy is trusted, and `true` if every address is
   * @returns the address
   */
  see(
    forwarded: string | readonly string[],
    address: string | undefined,
    trust: unknown,
  ): string | undefined {
    const list = String(forwarded)
    if (!trust) warnOnce(untrusted(this.#settings))
    else if (!this.#isDone) this.#count(list, address)
    // A proxy that overwrites the header leaves one address in it: then the trust is right.
    if (trust === true && list.includes(',')) warnOnce(firstAddress(this.#settings))
    return address
  }

  #count(forwarded: string, address: string | undefined): void {
    if (this.#seen === 0) this.#address = address
    this.#seen += 1
    if (address === this.#address) this.#ofAddress += 1
    // A copy, or the whole header would be kept with the slice.
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
    `${trustOne}, and with none have the header removed`
  )
}

function firstAddress({ trust, trustAll }: ProxySettings): string {
  return (
    `X-Forwarded-For came with several addresses, and ${trust} is true, so the first address is counted, which any client can make up; ` +
    `${trustAll}, or have your proxy overwrite the header`
  )
}

function oneAddress({ trust, count = trust, trustAll }: ProxySettings): string {
  return (
    `nearly all requests with X-Forwarded-For came from one address, although the forwarded addresses differ: ${count} may trust ` +
    `fewer proxies than there are, so that all clients share one limit; ${trustAll}. One very busy client looks the same: ` +
    `then all is well`
  )
}

/** A request behind more proxies than anybody has, all with an address of documentation. */
const farClient = {
  headers: { 'x-forwarded-for': Array(64).fill('192.0.2.1').join(', ') },
  socket: { remoteAddress: '192.0.2.1' },
}

const trusting = new WeakMap<object, boolean>()

/**
 * Returns whether an application of Fastify trusts every address. Fastify does not show
 * `trustProxy`, but its requests find their addresses by it.
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
