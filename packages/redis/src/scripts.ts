import { createHash } from 'node:crypto'
import { readLua } from './read-lua.ts'
import type { UsualName } from './usual-states.ts'

/** How `sliding-log` is stored: packed, or as a textbook sorted set that people can read with redis-cli. */
export type Encoding = 'packed' | 'sorted-set'

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
  readonly usual: { readonly [name in UsualName]: Script }
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
  /** The file of the module. */
  readonly module: string
  readonly algorithm: string
  /** The files of the whole algorithm, for keys in no usual state. */
  readonly whole: readonly string[]
}

const parts: { readonly [name in UsualName]: Parts } = {
  'sliding-log-string': {
    module: 'sliding-log-string',
    algorithm: 'sliding-log',
    whole: packedLog,
  },
  'sliding-log-blocks': {
    module: 'sliding-log-blocks',
    algorithm: 'sliding-log',
    whole: packedLog,
  },
  'sliding-counter': alike('sliding-counter'),
  'fixed-window': alike('fixed-window'),
  'token-bucket': alike('token-bucket'),
  'leaky-bucket': {
    module: 'token-bucket',
    algorithm: 'leaky-bucket',
    whole: ['token-bucket', 'leaky-bucket'],
  },
}

function alike(name: string): Parts {
  return { module: name, algorithm: name, whole: [name] }
}

/** Puts the scripts together from their files. */
export function loadScripts(encoding: Encoding): Scripts {
  const usual = (name: UsualName): Script => usualScript(name)
  return {
    general: generalScript(encoding),
    usual: {
      'sliding-log-string': usual('sliding-log-string'),
      'sliding-log-blocks': usual('sliding-log-blocks'),
      'sliding-counter': usual('sliding-counter'),
      'fixed-window': usual('fixed-window'),
      'token-bucket': usual('token-bucket'),
      'leaky-bucket': usual('leaky-bucket'),
    },
  }
}

function usualScript(name: UsualName): Script {
  const { module, algorithm, whole } = parts[name]
  const text = moduleText(module)
  return script([
    readLua('shared'),
    // Twice, so that a request of one policy needs no function around it.
    text,
    readLua('usual-alone'),
    `local function open_module()\n${text}\n${readLua(undoOf(module))}\nreturn use, consume, undo\nend`,
    `local ALGORITHM, IS_SHORT, HAS_LEVEL = '${algorithm}', ${name === 'sliding-log-string'}, ${module === 'token-bucket'}`,
    readLua('report'),
    defineWhole(whole),
    readLua('usual'),
  ])
}

function generalScript(encoding: Encoding): Script {
  const modules = [
    ...Object.entries(parts).map(([name, { module }]) => [name, module] as const),
    ['penalty', 'penalty'] as const,
  ]
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
    ...modules.map(
      ([name, module]) =>
        `usuals['${name}'] = function()\n${moduleText(module)}\n${readLua(undoOf(module))}\nreturn use, consume, undo, READS_STRING\nend`,
    ),
    defineWhole(whole),
    readLua('decide'),
  ])
}

/** A module with what it shares with the whole algorithm. */
function moduleText(module: string): string {
  const text = readLua(`usual/${module}`)
  return module === 'sliding-log-blocks' ? `${readLua('usual/block-layout')}\n${text}` : text
}

function undoOf(module: string): string {
  return module === 'sliding-log-blocks' ? 'usual/undo-blocks' : 'usual/undo-string'
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
