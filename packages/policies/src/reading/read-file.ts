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
  visit,
  type YAMLError,
} from 'yaml'
import { type Fault, optionOf, schemaFaults } from '../file/explain.ts'
import type { PolicyFile } from '../file/policy-file.ts'
import { withoutRemoved } from '../file/removed-fields.ts'
import { fileSchema } from '../schema/file-schema.ts'
import { ruleFaults } from './rules.ts'

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
/** Problems of a file that are looked for. */
const maxProblems = 100
/** Problems that one message lists. */
const maxListed = 10

/**
 * Finds what is wrong with a policy file in YAML or JSON: nothing in one that may come in force.
 * The checks of the code, such as the names of keys, come when a guard is made.
 * @returns the first 100 problems
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
  const messages = listed(problems, file, ({ message }) => message)
  throw new SluiceError('SLUICE_POLICY_FILE', messages)
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
  return [...lines, ...(problems.length > maxListed ? ['and more'] : [])].join('\n')
}

interface Parsed {
  /** `undefined` for a file with problems. */
  readonly value?: PolicyFile
  readonly problems: readonly Problem[]
}

/** Parses a policy file in a time that grows with its length alone. */
export function parsePolicyFile(text: string): Parsed {
  if (text.length > maxLength) {
    const message = `the file must have at most ${maxLength} characters, but has ${text.length}`
    return { problems: [syntaxProblem(message)] }
  }
  try {
    return parse(text)
  } catch (error) {
    // Aliases that stand for themselves, or for too much; values within thousands of others.
    return { problems: [syntaxProblem(errorText(error))] }
  }
}

function parse(text: string): Parsed {
  const lines = new LineCounter()
  // The check of yaml for unique keys compares each key with each other one.
  const settings = { lineCounter: lines, prettyErrors: false, uniqueKeys: false } as const
  const document = parseDocument(text, { ...settings, version: '1.2' })
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const broken: readonly Broken[] = [...document.errors, ...document.warnings]
  const unreadable = (broken.length > 0 ? broken : keyProblems(document))
    .slice(0, maxProblems)
    .map(({ message, pos }) => ({ ...syntaxProblem(message), ...place(pos[0]) }))
  if (unreadable.length > 0) return { problems: unreadable }
  // A value without a fault has this form.
  const value: PolicyFile = document.toJS({ maxAliasCount })
  const faults = schemaFaults(fileSchema, withoutRemoved(value), { name: '', most: maxProblems })
  const found = faults.length > 0 ? faults : ruleFaults(value)
  if (found.length === 0) return { value, problems: [] }
  const problems = found
    .slice(0, maxProblems)
    .map((fault) => ({ ...fault, ...place(offsetOf(document, fault)) }))
  return { problems: problems.sort((a, b) => a.line - b.line || a.column - b.column) }
}

type Broken = Pick<YAMLError, 'message' | 'pos'>

/** Finds duplicate keys of one map, and keys that are no text. */
function keyProblems(document: Document.Parsed): readonly Broken[] {
  const problems: Broken[] = []
  visit(document, {
    Map(_, { items }) {
      const names = new Set<string>()
      for (const { key } of items) {
        const name = isScalar(key) ? String(key.value) : undefined
        const isNew = name !== undefined && !names.has(name)
        if (isNew) names.add(name)
        const message = name === undefined ? 'Map keys must be text' : 'Map keys must be unique'
        const [from = 0, to = 0] = (isNode(key) && key.range) || []
        if (!isNew) problems.push({ message, pos: [from, to] })
      }
      return problems.length >= maxProblems ? visit.BREAK : undefined
    },
  })
  return problems
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
    const pair: Pair | undefined = isMap(node)
      ? node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(part))
      : undefined
    const child: unknown = isSeq(node) ? node.items[Number(part)] : pair?.value
    const isMeant = isNode(child) && !(atKey && index === path.length - 1)
    const found = isMeant ? child : pair?.key
    if (isNode(found)) offset = found.range?.[0] ?? offset
    node = isNode(child) ? child : null
  }
  return offset
}
