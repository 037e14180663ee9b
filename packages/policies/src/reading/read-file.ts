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

/** A mistake in a policy file, and its place. */
export interface Problem extends Fault {
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
}

/** Maximum length of a policy file in characters. */
const maxLength = 256_000
/** Maximum nodes after expanding aliases, so that a small file cannot become huge. */
const maxAliasCount = 1_000
/** Maximum number of problems to find. */
const maxProblems = 100
/** Maximum number of problems in one message. */
const maxListed = 10

/**
 * Finds the mistakes in a policy file in YAML or JSON; an empty list means that it is valid.
 * References to code, such as key names, are checked when a guard is created.
 * @returns the first 100 problems
 */
export function policyFileProblems(text: string): readonly Problem[] {
  return parsePolicyFile(text).problems
}

/**
 * Parses a policy file.
 * @param file the file name, for messages
 * @throws SluiceError that lists the mistakes by line and column
 */
export function readPolicyFile(text: string, file: string): PolicyFile {
  const { value, problems } = parsePolicyFile(text)
  if (value) return value
  const messages = listed(problems, file, ({ message }) => message)
  throw new SluiceError('SLUICE_POLICY_FILE', messages)
}

/** Lists problems by place, without values: more people see the list than the file. */
export function placesOf(problems: readonly Problem[], file: string): string {
  return listed(problems, file, ({ path, atKey, kind }) => {
    const holder = atKey ? path.slice(0, -1) : path
    // The key of an override may have any names.
    const known = holder[0] === 'overrides' ? holder.slice(0, 3) : holder
    return optionOf(known) || (kind === 'syntax' ? 'not YAML' : 'the file')
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

/** Parses a policy file in linear time. */
export function parsePolicyFile(text: string): Parsed {
  if (text.length > maxLength) {
    const message = `the file must have at most ${maxLength} characters, but has ${text.length}`
    return { problems: [syntaxProblem(message)] }
  }
  try {
    return parse(text)
  } catch (error) {
    // Aliases that are recursive or expand too far; values nested thousands of levels deep.
    return { problems: [syntaxProblem(errorText(error))] }
  }
}

function parse(text: string): Parsed {
  const lines = new LineCounter()
  // yaml's own check for unique keys is quadratic.
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

/** Finds duplicate map keys, and keys that are not strings. */
function keyProblems(document: Document.Parsed): readonly Broken[] {
  const problems: Broken[] = []
  visit(document, {
    Map(_, { items }) {
      const names = new Set<string>()
      for (const { key } of items) {
        const name = isScalar(key) ? String(key.value) : undefined
        const isNew = name !== undefined && !names.has(name)
        if (isNew) names.add(name)
        const message = name === undefined ? 'Map keys must be strings' : 'Map keys must be unique'
        const [from = 0, to = 0] = (isNode(key) && key.range) || []
        if (!isNew) problems.push({ message, pos: [from, to] })
      }
      return problems.length >= maxProblems ? visit.BREAK : undefined
    },
  })
  return problems
}

/** Removes the file's text from a parser message: it follows a colon. */
function syntaxProblem(message: string): Problem {
  const [problem = ''] = message.split(': ')
  return { path: [], atKey: false, kind: 'syntax', line: 1, column: 1, message: problem }
}

/** Returns the position of a path in the text; if it is missing, of the enclosing value. */
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
