import { grantsMark } from '../key-encoder.ts'
import { readLua } from '../read-lua.ts'
import { sha1Of } from './sha1.ts'
import { algorithmFiles, type Encoding, type UsualModule } from './usual-states.ts'

/** A Lua script with the SHA-1 by which the server knows it. */
export interface Script {
  readonly text: string
  readonly sha1: string
}

/** The scripts of one store, put together from their files. */
export class Scripts {
  /** Reads the grants of a key. */
  readonly heldUnits: Script
  /** Decides any call without grants. */
  readonly general: Script
  readonly #encoding: Encoding
  readonly #usual = new Map<string, Script>()
  #granting: Script | undefined

  constructor(encoding: Encoding) {
    this.#encoding = encoding
    this.heldUnits = scriptOf(readLua('held-units'), {})
    const general = defineGeneral(algorithmFiles(encoding))
    this.general = scriptOf(readLua('decide'), { DEFINE: general })
  }

  /** Decides any call. Behind the keys stand the keys of their grants. */
  get granting(): Script {
    if (this.#granting) return this.#granting
    const define = defineGranting(algorithmFiles(this.#encoding))
    this.#granting = scriptOf(readLua('decide'), { DEFINE: define })
    return this.#granting
  }

  /** Decides calls whose requests consume by one policy, whose keys this module decides. */
  usualOne(module: UsualModule): Script {
    return this.#usualScript('usual-one', [module])
  }

  /**
   * Decides calls whose requests consume by lists of these modules. `undefined` if the list is too
   * long, if one of its policies may have grants, or if the store has too many such scripts.
   */
  usualList(list: readonly UsualModule[]): Script | undefined {
    if (list.some(({ hasGrants }) => hasGrants)) return undefined
    const hasRoom = list.length <= maxWidth && this.#usual.size < maxUsual
    return hasRoom || this.#usual.has(idOf(list))
      ? this.#usualScript('usual-list', list)
      : undefined
  }

  #usualScript(frame: string, list: readonly UsualModule[]): Script {
    const id = idOf(list)
    const known = this.#usual.get(id)
    if (known) return known
    const made = usualScript(frame, list)
    this.#usual.set(id, made)
    return made
  }
}

function idOf(list: readonly UsualModule[]): string {
  const idOfOne = ({ file, algorithm, countsDenied }: UsualModule): string =>
    `${file} of ${algorithm}${countsDenied ? ' denied' : ''}`
  return list.map(idOfOne).join()
}

/** A longer list needs more variables than Lua has. */
const maxWidth = 6
/** The server keeps scripts until it is restarted. */
const maxUsual = 20

function usualScript(frame: string, parts: readonly UsualModule[]): Script {
  // Only the packed encoding has usual states.
  const files = algorithmFiles('packed', new Set(parts.map(({ algorithm }) => algorithm)))
  const hasGrants = parts.some((part) => part.hasGrants)
  const general = hasGrants ? defineGranting(files) : defineGeneral(files)
  const define = `${general}\n${definePolicies(parts)}`
  const readsStrings = parts.some(({ readsString }) => readsString)
  const text = forEach(readLua(frame), parts)
    .replace('READS_STRINGS', String(readsStrings))
    .replace(/\bCOUNTS_DENIED\b/g, String(parts.some(({ countsDenied }) => countsDenied)))
    .replace(/\bWIDTH\b/g, String(parts.length))
    .replace(/#KEYS\b/g, hasGrants ? '#KEYS / 2' : '#KEYS')
  return scriptOf(text, { DEFINE: define, DECIDE: parts.map(moduleText)[0] ?? '' })
}

/** The variables of a module that differ by policy. */
const ofPolicy =
  /\b(?:limit|window|setting|key|amount|detail|denied|write|where|data|ttl|extra|is_new)\b/g

/** Repeats what stands between `-- EACH` and `-- END` for each policy. */
function forEach(frame: string, parts: readonly UsualModule[]): string {
  return frame.replace(/^ *-- EACH\n([\s\S]*?)^ *-- END\n/gm, (_, block: string) =>
    parts
      .map((part, index) =>
        withIncludes(block)
          .replace(/^ *-- DECIDE$/m, () => withIncludes(moduleText(part)))
          .replace(ofPolicy, `$&_${index + 1}`)
          .replace(/\bN\b/g, String(index + 1)),
      )
      .join(''),
  )
}

/** Each module is a loop that is gone through once, so that it can be left early. */
function moduleText({ file, readsString, hasGrants }: UsualModule): string {
  const reading = readsString ? readLua('usual/read-string') : ''
  // Its key is among those that are declared. Held units are no usual state.
  const looking = hasGrants
    ? `if redis_call('EXISTS', key .. '${grantsMark}') == 1 then break end\n`
    : ''
  return `repeat\n${looking}${reading}\n${readLua(`usual/${file}`)}\nuntil true`
}

/** Writes the Lua function that finds the traits of a policy for the whole algorithms. */
function definePolicies(parts: readonly UsualModule[]): string {
  const known = parts.map(
    ({ algorithm, countsDenied, traits = '' }) =>
      `{ algorithm = '${algorithm}', count_denied = ${countsDenied}, ${traits} }`,
  )
  return `local function policy_of(kind)\nreturn ({ ${known.join(', ')} })[kind]\nend`
}

/**
 * Writes the Lua function that defines how any request is decided. A call in which all keys are in
 * a usual state never runs it.
 */
function defineGeneral(files: readonly string[]): string {
  const body = ['prelude', ...files.map((name) => `algorithms/${name}`), 'request'].map(readLua)
  return `local function define_general(reply)\n${body.join('\n')}\nend`
}

/** The same for policies of which processes may hold units. */
function defineGranting(files: readonly string[]): string {
  return defineGeneral([...files, 'held-log']).replace('-- GRANTS', () => readLua('grants'))
}

/**
 * Puts texts in the place of the lines of a frame that name them: `-- DEFINE`, and
 * `-- include <file>` for a file.
 */
function scriptOf(frame: string, parts: { readonly [name: string]: string }): Script {
  const text = withIncludes(
    withIncludes(frame).replace(/^ *-- ([A-Z]+)$/gm, (line, name) => parts[name] ?? line),
  )
  return { text, sha1: sha1Of(text) }
}

function withIncludes(text: string): string {
  return text.replace(/^ *-- include (\S+)$/gm, (_line, name: string) =>
    withIncludes(readLua(name)),
  )
}
