import type { HttpRequest } from '../adapter/request.ts'
import type { KeyOrMode } from '../keys/missing-key.ts'
import { AccessList, type AccessListOptions } from './access-list.ts'

/** What the lists say of somebody. */
export type Access = 'allow' | 'block' | 'unlisted'

/** The lists that a guard may have. */
export interface ListOptions {
  /** Who passes uncounted, without headers: addresses and networks, and keys. @default nobody */
  allow?: AccessListOptions
  /** Who is refused at once, with 403 and at no cost for the store; also if `allow` names them. @default nobody */
  block?: AccessListOptions
}

/** Who passes uncounted, and who is refused; whoever is in both is refused. */
export class AccessLists {
  readonly #allow: AccessList
  readonly #block: AccessList

  /** @throws SluiceError that names the entry which is wrong */
  constructor({ allow = {}, block = {} }: ListOptions) {
    this.#allow = AccessList.read(allow, 'allow')
    this.#block = AccessList.read(block, 'block')
  }

  /** Reads the address only where there is something to compare it with. */
  ofAddress(request: HttpRequest): Access {
    if (!this.#block.hasAddresses && !this.#allow.hasAddresses) return 'unlisted'
    const address = request.ip
    if (address === undefined) return 'unlisted'
    if (this.#block.hasAddress(address)) return 'block'
    return this.#allow.hasAddress(address) ? 'allow' : 'unlisted'
  }

  /** Whether somebody whose address is allowed may yet be blocked. */
  get blockKeys(): boolean {
    return this.#block.hasKeys
  }

  /** @param access what the address says */
  ofKeys(keys: readonly KeyOrMode[], access: Access): Access {
    let known = access
    for (const found of keys) {
      if (typeof found === 'string') continue
      if (this.#block.hasKey(found.key)) return 'block'
      if (this.#allow.hasKey(found.key)) known = 'allow'
    }
    return known
  }
}

/**
 * The lists among the options of a guard, read: the guards of its routes take them over so, and need not read thousands of entries each.
 * @throws SluiceError that names the entry which is wrong
 */
export function readLists({ allow, block }: ListOptions): ListOptions {
  return {
    ...(allow !== undefined && { allow: AccessList.read(allow, 'allow') }),
    ...(block !== undefined && { block: AccessList.read(block, 'block') }),
  }
}

/** `undefined` where there are none: as for most guards. */
export function accessLists(options: ListOptions): AccessLists | undefined {
  const { allow, block } = options
  return allow === undefined && block === undefined ? undefined : new AccessLists(options)
}
