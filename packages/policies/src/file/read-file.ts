import { errorText, SluiceError } from '@sluice/core'
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
} from 'yaml'
import { type Fault, schemaFaults } from './explain.ts'
import type { PolicyFile } from './policy-file.ts'
import { ruleFaults } from './rules.ts'
import { fileSchema } from './schema/file-schema.ts'

/** A fault of a policy file, and where it stands. */
export interface Problem extends Fault {
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
}

/** The most characters of a policy file. */
const maxLength = 256_000
/** Nodes that aliases may stand for, so that a small file cannot become a huge one. */
const maxAliasCount = 1_000
/** Problems that one message lists. */
const maxListed = 10

/**
 * Finds what is wrong with a policy file in YAML or JSON: nothing in one that may come in force.
 * The checks of the code, such as the names of keys, come when a guard is made.
 */
export function policyFileProblems(text: string): readonly Problem[] {
  return parse(text).problems
}

/**
 * Reads a policy file.
 * @param file what the file is called, for messages
 * @throws SluiceError that lists what is wrong by line and column
 */
export function readPolicyFile(text: string, file: string): PolicyFile {
  const { value, problems } = parse(text)
  if (problems.length === 0 && isPolicyFile(value)) return value
  const listed = problems
    .slice(0, maxListed)
    .map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`)
  const rest = problems.length - listed.length
  throw new SluiceError(
    'SLUICE_POLICY_FILE',
    [...listed, ...(rest > 0 ? [`and ${rest} more`] : [])].join('\n'),
  )
}

interface Parsed {
  readonly value: unknown
  readonly problems: readonly Problem[]
}

/** Tells TypeScript that a value without a fault has the form of the schema. */
function isPolicyFile(_value: unknown): _value is PolicyFile {
  return true
}

function parse(text: string): Parsed {
  if (text.length > maxLength) {
    return only(1, 1, `the file must have at most ${maxLength} characters, but has ${text.length}`)
  }
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, version: '1.2' })
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const broken = [...document.errors, ...document.warnings]
  if (broken.length > 0) {
    const problems = broken.map(({ message, pos }) => ({
      ...place(pos[0]),
      ...syntax,
      message: errorText(message),
    }))
    return { value: undefined, problems }
  }
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount })
  } catch (error) {
    // Aliases that stand for themselves, or for too much.
    return only(1, 1, errorText(error))
  }
  const faults = schemaFaults(fileSchema, value)
  const found = faults.length > 0 || !isPolicyFile(value) ? faults : ruleFaults(value)
  const problems = found.map((fault) => ({ ...fault, ...place(offsetOf(document, fault)) }))
  return { value, problems: problems.sort((a, b) => a.line - b.line || a.column - b.column) }
}

const syntax = { path: [], atKey: false, kind: 'syntax' } as const

function only(line: number, column: number, message: string): Parsed {
  return { value: undefined, problems: [{ ...syntax, line, column, message }] }
}

/** Returns the position of a path in the text, or of the value around it if the path is missing. */
function offsetOf(document: Document.Parsed, { path, atKey }: Fault): number {
  let node: Node | null = document.contents
  let offset = node?.range?.[0] ?? 0
  for (const [index, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document) ?? null
    if (isMap(node)) {
      const pair: Pair | undefined = node.items.find(
        ({ key }) => String(isScalar(key) ? key.value : key) === String(part),
      )
      if (!pair) return offset
      const keyNode = isNode(pair.key) ? pair.key : undefined
      node = isNode(pair.value) ? pair.value : null
      const isLast = index === path.length - 1
      offset = (isLast && atKey ? keyNode : (node ?? keyNode))?.range?.[0] ?? offset
    } else if (isSeq(node)) {
      const item: unknown = node.items[Number(part)]
      if (!isNode(item)) return offset
      node = item
      offset = node.range?.[0] ?? offset
    } else return offset
  }
  return offset
}
