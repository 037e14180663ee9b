import { createHash } from 'node:crypto'
import { readLua } from './read-lua.ts'
import type { Encoding, UsualName } from './usual-states.ts'

/** A Lua script with the SHA-1 by which the server knows it. */
export interface Script {
  readonly text: string
  readonly sha1: string
}

/** The scripts of one store. */
export interface Scripts {
  /** Decides any call. */
  readonly general: Script
  /** Decides calls whose requests consume by one list of policies, all of one module. */
  readonly usual: ReadonlyMap<UsualName, Script>
}

const packedLog = [
  'sliding-log',
  'sliding-log-string',
  'sliding-log-block-form',
  'sliding-log-blocks',
  'sliding-log-packed',
]
const sortedSetLog = ['sliding-log', 'sliding-log-sorted-set']

interface Parts {
  /** The file of the module, and that of how to undo what it wrote. */
  readonly module: string
  readonly undo: string
  /** A file that the module shares with the whole algorithm. */
  readonly shared?: string
  readonly algorithm: string
  /** The files of the whole algorithm, for keys in no usual state. */
  readonly whole: readonly string[]
  /** Whether a log is one string, and whether the third number is the level of a bucket. */
  readonly isShort?: boolean
  readonly hasLevel?: boolean
}

const parts: { readonly [name in UsualName]: Parts } = {
  'sliding-log-string': {
    ...alike('sliding-log-string'),
    algorithm: 'sliding-log',
    whole: packedLog,
    isShort: true,
  },
  'sliding-log-blocks': {
    module: 'sliding-log-blocks',
    undo: 'undo-blocks',
    shared: 'block-layout',
    algorithm: 'sliding-log',
    whole: packedLog,
  },
  'sliding-counter': alike('sliding-counter'),
  'fixed-window': alike('fixed-window'),
  'token-bucket': { ...alike('token-bucket'), hasLevel: true },
  'leaky-bucket': {
    module: 'token-bucket',
    undo: 'undo-string',
    algorithm: 'leaky-bucket',
    whole: ['token-bucket', 'leaky-bucket'],
    hasLevel: true,
  },
  penalty: alike('penalty'),
}

function alike(name: string): Parts {
  return { module: name, undo: 'undo-string', algorithm: name, whole: [name] }
}

/** A penalty never stands alone in a list, so only the general script has its module. */
const scripted: readonly UsualName[] = [
  'sliding-log-string',
  'sliding-log-blocks',
  'sliding-counter',
  'fixed-window',
  'token-bucket',
  'leaky-bucket',
]

/** Puts the scripts together from their files. */
export function loadScripts(encoding: Encoding): Scripts {
  return {
    general: generalScript(encoding),
    usual: new Map(scripted.map((name) => [name, usualScript(parts[name])])),
  }
}

function usualScript(part: Parts): Script {
  const { algorithm, whole, isShort = false, hasLevel = false } = part
  const text = moduleText(part)
  return script([
    readLua('shared'),
    // Twice, so that a request of one policy needs no function around it.
    text,
    readLua('usual-alone'),
    `local open_module = ${moduleFunction(part)}`,
    `local ALGORITHM, IS_SHORT, HAS_LEVEL = '${algorithm}', ${isShort}, ${hasLevel}`,
    readLua('report'),
    defineWhole(whole),
    readLua('usual'),
  ])
}

function generalScript(encoding: Encoding): Script {
  const whole = [
    ...(encoding === 'packed' ? packedLog : sortedSetLog),
    'sliding-counter',
    'fixed-window',
    'token-bucket',
    'leaky-bucket',
    'concurrency',
    'penalty',
  ]
  return script([
    readLua('shared'),
    readLua('report'),
    'local usuals = {}',
    ...Object.entries(parts).map(([name, part]) => `usuals['${name}'] = ${moduleFunction(part)}`),
    defineWhole(whole),
    readLua('decide'),
  ])
}

/** A module with what it shares with the whole algorithm. */
function moduleText({ module, shared }: Parts): string {
  const text = readLua(`usual/${module}`)
  return shared ? `${readLua(`usual/${shared}`)}\n${text}` : text
}

/** A module as a function of Lua, since each policy needs one of its own. */
function moduleFunction(part: Parts): string {
  const body = `${moduleText(part)}\n${readLua(`usual/${part.undo}`)}`
  return `function()\n${body}\nreturn use, consume, undo, READS_STRING\nend`
}

/** A function, so that a call in which all keys are in a usual state defines nothing of it. */
function defineWhole(algorithms: readonly string[]): string {
  const body = ['prelude', ...algorithms.map((name) => `algorithms/${name}`), 'row'].map(readLua)
  const shared = algorithms.includes('sliding-log-blocks') ? [readLua('usual/block-layout')] : []
  return `local function define_whole(reply)\n${[...shared, ...body].join('\n')}\nend`
}

function script(texts: readonly string[]): Script {
  const text = texts.join('\n')
  return { text, sha1: createHash('sha1').update(text).digest('hex') }
}
