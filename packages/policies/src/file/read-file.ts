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
import { type Fault, optionOf, schemaFaults } from './explain.ts'
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
  return parsePolicyFile(text).problems
}

/**
 * Reads a policy file.
 * @param file what the file is called, for messages
 * @throws SluiceError that lists what is wrong by line and column
 */
export function readPolicyFile(text: string, file: string): PolicyFile {
  const { value, problems } = parsePolicyFile(text)
  if (value) return value
  throw new SluiceError(
    'SLUICE_POLICY_FILE',
    listed(problems, file, ({ message }) => message),
  )
}

/** Lists the places of problems without a value of the file: more people read it than the file. */
export function placesOf(problems: readonly Problem[], file: string): string {
  return listed(problems, file, ({ path, atKey, kind }) => {
    const holder = atKey ? path.slice(0, -1) : path
    // The names in the key of an override may be anything.
    const known = holder[0] === 'overrides' ? holder.slice(0, 3) : holder
    return optionOf(known) || (kind === 'syntax' ? 'no YAML' : 'the file')
  })
}

function listed(
  problems: readonly Problem[],
  file: string,
  textOf: (problem: Problem) => string,
): string {
  const lines = problems
    .slice(0, maxListed)
    .map((problem) => `${file}:${problem.line}:${problem.column}: ${textOf(problem)}`)
  const rest = problems.length - lines.length
  return [...lines, ...(rest > 0 ? [`and ${rest} more`] : [])].join('\n')
}

interface Parsed {
  /** `undefined` for a file with problems. */
  readonly value?: PolicyFile
  readonly problems: readonly Problem[]
}

/** Tells TypeScript that a value without a fault has the form of the schema. */
function isPolicyFile(_value: unknown): _value is PolicyFile {
  return true
}

export function parsePolicyFile(text: string): Parsed {
  if (text.length > maxLength) {
    const message = `the file must have at most ${maxLength} characters, but has ${text.length}`
    return { problems: [syntaxProblem(message)] }
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
      ...syntaxProblem(message),
      ...place(pos[0]),
    }))
    return { problems }
  }
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount })
  } catch (error) {
    // Aliases that stand for themselves, or for too much.
    return { problems: [syntaxProblem(errorText(error))] }
  }
  const faults = schemaFaults(fileSchema, value)
  const found = faults.length > 0 || !isPolicyFile(value) ? faults : ruleFaults(value)
  if (found.length === 0 && isPolicyFile(value)) return { value, problems: [] }
  const problems = found.map((fault) => ({ ...fault, ...place(offsetOf(document, fault)) }))
  return { problems: problems.sort((a, b) => a.line - b.line || a.column - b.column) }
}

/** Takes the text of the file off a message of the parser: it follows a colon. */
function syntaxProblem(message: string): Problem {
  const [problem = ''] = message.split(': ')
  return { path: [], atKey: false, kind: 'syntax', line: 1, column: 1, message: problem }
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
