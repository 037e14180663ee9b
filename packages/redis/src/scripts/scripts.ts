import { sha1 } from '@noble/hashes/legacy.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { Counting } from '@sluice/core'
import type { Encoding } from '../keys/key-encoder.ts'
import * as lua from './generated/lua.ts'
import type { UsualModule } from './usual-states.ts'

/** A Lua script with the SHA-1 by which the server knows it. */
export interface Script {
  readonly text: string
  readonly sha1: string
}

export function scriptOf(text: string): Script {
  return { text, sha1: bytesToHex(sha1(utf8ToBytes(text))) }
}

/** A longer list would need more local variables than Lua allows. */
const maxWidth = 6
/** Bounds the scripts per store: the server keeps them until it restarts. */
const maxUsual = 20

/**
 * The scripts of one store. Scripts for lists of policies are too many to generate ahead of time.
 */
export class Scripts {
  readonly heldUnits: Script = scriptOf(lua.heldUnits)
  /** Decides any call without grants. */
  readonly general: Script
  readonly #encoding: Encoding
  readonly #usual = new Map<string, Script>()
  #granting: Script | undefined

  constructor(encoding: Encoding) {
    this.#encoding = encoding
    this.general = scriptOf(lua.decide({ define: defineGeneral(encoding, false) }))
  }

  /** Decides any call. The keys of the grants follow the keys. */
  get granting(): Script {
    this.#granting ??= scriptOf(lua.decide({ define: defineGeneral(this.#encoding, true) }))
    return this.#granting
  }

  /**
   * Decides `consume` calls with a list of these modules. `undefined` if the list is too long, if
   * one of several policies may have grants, or if the store has too many of these scripts.
   */
  usual(list: readonly UsualModule[]): Script | undefined {
    const id = idOf(list)
    const known = this.#usual.get(id)
    if (known || (list.length > 1 && !this.#takes(list))) return known
    return this.#add(id, usualText(list))
  }

  #add(id: string, text: string): Script {
    const script = scriptOf(text)
    this.#usual.set(id, script)
    return script
  }

  #takes(list: readonly UsualModule[]): boolean {
    const hasRoom = list.length <= maxWidth && this.#usual.size < maxUsual
    return hasRoom && list.every(({ hasGrants }) => !hasGrants)
  }
}

function idOf(list: readonly UsualModule[]): string {
  return list
    .map(({ file, algorithm, countsDenied }) => `${file} of ${algorithm} ${countsDenied}`)
    .join()
}

function usualText(list: readonly UsualModule[]): string {
  const hasGrants = list.some((one) => one.hasGrants)
  const countsDenied = list.some((one) => one.countsDenied)
  const modules = list.map(({ file }) => lua.usual[file])
  const [decide, ...others] = modules
  const isOne = decide && others.length === 0
  return lua.usualCall({
    // Only the packed encoding has usual states.
    define: defineGeneral('packed', hasGrants),
    policies: list.map(luaPolicy).join(),
    ...{ hasGrants, countsDenied, modules, width: list.length },
    readsStrings: list.some(({ file }) => lua.stringModules.has(file)),
    lone: isOne ? lua.usualOne({ hasGrants, countsDenied, decide: decide('') }) : '',
  })
}

/** Returns a policy for the full algorithms, as a Lua table of the variables of its module. */
function luaPolicy(
  { file, algorithm, countsDenied }: UsualModule,
  place: number,
  { length }: readonly UsualModule[],
): string {
  const isShort = file === 'sliding-log-string'
  const s = lua.suffixOf(place + 1, length)
  const terms = `limit = limit${s}, window = window${s}, setting = setting${s}`
  return `{ algorithm = '${algorithm}', count_denied = ${countsDenied}, is_short = ${isShort}, ${terms} }`
}

/** Returns the Lua function that can decide any request. */
function defineGeneral(encoding: Encoding, hasGrants: boolean): string {
  const isLeftOut = (name: string) =>
    name === (encoding === 'packed' ? 'sliding-log-sorted-set' : 'sliding-log-packed') ||
    (name === 'granted-log' && !hasGrants)
  const files = Object.entries(lua.algorithms satisfies Readonly<Record<Counting, string>>)
  return lua.prelude({
    algorithms: files.flatMap(([name, text]) => (isLeftOut(name) ? [] : text)).join('\n'),
    grants: hasGrants ? lua.grants : '',
  })
}
