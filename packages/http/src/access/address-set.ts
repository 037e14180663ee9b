import { invalid } from '@sluice/core'
import ipaddr from 'ipaddr.js'
import {
  type IpAddress,
  isTranslated,
  maskedBytes,
  readIp,
  remember,
} from '../keys/canonical-ip.ts'

/** A set of addresses and networks. A look-up takes one step per distinct prefix length. */
export class AddressSet {
  /** Family and leading bits of each network. */
  readonly #networks = new Set<string>()
  readonly #lengths = { ipv4: new Set<number>(), ipv6: new Set<number>() }
  readonly #known = new Map<string, boolean>()

  /** @throws SluiceError that names an entry that is neither an address nor a network */
  constructor(texts: readonly unknown[], option: string) {
    for (const [index, text] of texts.entries()) this.#add(text, `${option}[${index}]`)
  }

  /** Returns whether an address, in any notation, is in the set; an invalid one never is. */
  has(address: string): boolean {
    return this.#known.get(address) ?? remember(this.#known, address, this.#find(address))
  }

  #find(text: string): boolean {
    const address = readIp(text)
    if (!address) return false
    const bits = bitsOf(address)
    for (const length of this.#lengths[address.kind()]) {
      if (this.#networks.has(bits.slice(0, length + 1))) return true
    }
    return false
  }

  #add(text: unknown, option: string): void {
    const { address, length } = readNetwork(text, option)
    const bits = bitsOf(address)
    if (bits.includes('1', length + 1)) {
      const base = ipaddr.fromByteArray(maskedBytes(address.toByteArray(), length))
      throw invalid({ option }, text, `the first address of the network, '${base}/${length}'`)
    }
    this.#networks.add(bits.slice(0, length + 1))
    this.#lengths[address.kind()].add(length)
  }
}

const legal = `an address or a network, such as '203.0.113.9', '10.0.0.0/8' or '2001:db8::/32'`

const translatedFix = 'an IPv4 network: clients behind NAT64 count as their IPv4'

/** An IPv6 address that maps to an IPv4 counts as that IPv4. `length` is the prefix length. */
function readNetwork(text: unknown, option: string): { address: IpAddress; length: number } {
  const [, host = '', digits] =
    /^([\d.]+|[\dA-Fa-f:.]*:[\dA-Fa-f:.]*)(?:\/(\d{1,3}))?$/.exec(String(text)) ?? []
  const address = readIp(host)
  // A port is legal in the address of a request, and not in a list.
  const isWithPort = /^\d+\.[\d.]*:/.test(host)
  if (typeof text !== 'string' || !address || isWithPort) throw invalid({ option }, text, legal)
  if (isTranslated(address)) throw invalid({ option }, text, translatedFix)
  const written = host.includes(':') ? 128 : 32
  const actual = address.kind() === 'ipv4' ? 32 : 128
  const least = written - actual
  const length = Number(digits ?? written) - least
  if (length >= 0 && length <= actual) return { address, length }
  throw invalid({ option }, text, `${legal}, with a prefix from ${least} to ${written}`)
}

/** The family, 4 or 6, and the bits of an address. */
function bitsOf(address: IpAddress): string {
  const family = address.kind() === 'ipv4' ? '4' : '6'
  const bytes = address.toByteArray().map((byte) => byte.toString(2).padStart(8, '0'))
  return family + bytes.join('')
}
