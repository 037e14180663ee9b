import { join } from 'node:path'
import ts from '@typescript/typescript6'
import { readText, root } from './workspace.ts'

export interface OptionEntry {
  readonly name: string
  /** The type and the legal range, in Markdown. */
  readonly type: string
  /** Empty where the declaration tells none. */
  readonly byDefault: string
  readonly isRequired: boolean
  /** The docstring's first sentences. */
  readonly about: string
}

export type OptionEntries = (types: readonly string[]) => ReadonlyMap<string, OptionEntry>

/** Starts the compiler on the sources of packages, and on the texts of more files. */
export function compile(
  packages: readonly string[],
  more: Readonly<Record<string, string>> = {},
): ts.Program {
  const options = {
    customConditions: ['@sluice/source'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: true,
    strict: true,
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const { readFile, fileExists } = host
  host.fileExists = (path) => more[path] !== undefined || fileExists(path)
  host.readFile = (path) => more[path] ?? readFile(path)
  const sources = [...packages.flatMap(entriesOf), ...Object.keys(more)]
  return ts.createProgram(sources, options, host)
}

export function entriesOf(name: string): readonly string[] {
  const { exports }: { exports: object } = JSON.parse(readText(`packages/${name}/package.json`))
  return Object.values(exports).flatMap((entry: unknown) => {
    const source =
      typeof entry === 'object' && entry ? Reflect.get(entry, '@sluice/source') : undefined
    return typeof source === 'string' ? [join(root, 'packages', name, source)] : []
  })
}

/** Reads the options of types and of tables, those of each member of a union: `package#Name`. */
export function optionEntries(program: ts.Program): OptionEntries {
  const checker = program.getTypeChecker()
  const files = program.getSourceFiles()
  const known = new Map<string, ReadonlyMap<string, OptionEntry>>()
  return (types) => {
    const before = known.get(types.join())
    if (before) return before
    const found = new Map<string, OptionEntry>()
    known.set(types.join(), found)
    for (const one of types.flatMap(propertiesOf)) {
      const entry = entryOf(one)
      if (!found.get(entry.name)?.about) found.set(entry.name, entry)
    }
    return found
  }

  function propertiesOf(type: string): readonly ts.Symbol[] {
    const [folder = '', name] = type.split('#')
    const own = join(root, `packages/${folder}/src`)
    const declaration = files
      .filter(({ fileName }) => fileName.startsWith(own))
      .flatMap(({ statements }) => [...statements])
      .filter(
        (one) =>
          ts.isInterfaceDeclaration(one) ||
          ts.isTypeAliasDeclaration(one) ||
          ts.isClassDeclaration(one),
      )
      .find((one) => one.name?.text === name)
    if (!declaration) throw new Error(`there is no ${type}`)
    const found = checker.getTypeAtLocation(declaration)
    return (found.isUnion() ? found.types : [found]).flatMap((one) =>
      checker.getPropertiesOfType(one),
    )
  }

  function entryOf(symbol: ts.Symbol): OptionEntry {
    const about = ts.displayPartsToString(symbol.getDocumentationComment(checker))
    const tag = symbol.getJsDocTags(checker).find(({ name }) => name === 'default')
    const declaration = symbol.declarations?.find(
      (one) => ts.isPropertySignature(one) || ts.isPropertyDeclaration(one),
    )
    const range = /\d to \d|[≥≤]/.test(about) ? undefined : rangeOf(declaration?.getText() ?? '')
    return {
      name: symbol.name,
      type: [typeOf(writtenType(checker.getTypeOfSymbol(symbol))), ...(range ?? [])].join(', '),
      byDefault: line(ts.displayPartsToString(tag?.text)),
      isRequired: (symbol.flags & ts.SymbolFlags.Optional) === 0,
      about: beginningOf(line(about)),
    }
  }

  /** The field of a table is a check, whose argument is what users write. */
  function writtenType(type: ts.Type): ts.Type {
    const check = checker.getNonNullableType(type)
    const isCheck =
      check.aliasSymbol?.name.endsWith('Option') && check.getCallSignatures().length > 0
    return (isCheck && check.aliasTypeArguments?.[0]) || type
  }

  function typeOf(type: ts.Type): string {
    const alias = type.aliasSymbol?.name ?? type.symbol?.name ?? ''
    const word = words.get(alias)
    if (word !== undefined) return word
    if (type.isUnion()) {
      const members = type.types.filter(({ flags }) => !(flags & nothing)).map(typeOf)
      if (members.includes('`true`')) members.splice(0, 2, 'boolean')
      const isDuration = members.includes('duration')
      const found = new Set(
        members.filter((one) => !isDuration || !['number', 'object'].includes(one)),
      )
      return [...found].join([...found].every((one) => /^`'/.test(one)) ? ', ' : ' or ')
    }
    if (type.isStringLiteral()) return code(`'${type.value}'`)
    if (checker.isArrayType(type)) {
      const [element] = checker.getTypeArguments(type as ts.TypeReference)
      return element
        ? `list of ${typeOf(element).replace(/^(string|number|object)$/, '$1s')}`
        : 'list'
    }
    if (type.getCallSignatures().length > 0) return 'function'
    const text = checker.typeToString(type).replace(/<.*>/gs, '')
    if (type.isIntersection() || text.startsWith('{')) return 'object'
    return words.get(text) ?? (text.startsWith('`') ? 'duration' : code(alias || text))
  }
}

const nothing = ts.TypeFlags.Undefined | ts.TypeFlags.Null

const words: ReadonlyMap<string, string> = new Map([
  ...['string', 'String'].map((name) => [name, 'string'] as const),
  ...['Omit', 'OptionsOf', 'Readonly', 'Record'].map((name) => [name, 'object'] as const),
  ...['duration', 'number', 'object'].map((name) => [name, name] as const),
  ...([
    ['Duration', 'duration'],
    ['KeyResolver', 'resolver'],
    ['unlimited', '`unlimited`'],
  ] as const),
])

/** The bounds that a check has as literals: `{ min: 1, max: 64 }`. */
function rangeOf(declaration: string): string[] {
  const [, min, max] = /\{ min: ([\d_]+)(?:, max: ([\d_]+))? \}/.exec(declaration) ?? []
  return min === undefined ? [] : [max === undefined ? `≥ ${min}` : `${min} to ${max}`]
}

function beginningOf(about: string): string {
  const [first = '', ...more] = about.split(/(?<=[.!?]) (?=[A-Z`*])/)
  const next = more.findIndex(
    (_, count) => `${first} ${more.slice(0, count + 1).join(' ')}`.length > 150,
  )
  return [first, ...more.slice(0, next === -1 ? more.length : next)].join(' ')
}

function code(text: string): string {
  return `\`${text}\``
}

function line(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
