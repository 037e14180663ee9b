import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { filesUnder, readText, root } from '../support/workspace.ts'

// Writes the texts of `packages/redis/lua` into a module of the store: `npm run build:lua`.

const folder = 'packages/redis/lua'
export const generatedFile = 'packages/redis/src/scripts/generated/lua.ts'

/** The lines and words of a script that the store fills in, with the name and the type of each. */
const holes: Readonly<Record<string, readonly [name: string, type: string]>> = {
  ALGORITHMS: ['algorithms', 'string'],
  COUNTS_DENIED: ['countsDenied', 'boolean'],
  DECIDE: ['decide', 'string'],
  DEFINE: ['define', 'string'],
  GRANTS: ['grants', 'string'],
  HAS_GRANTS: ['hasGrants', 'boolean'],
  LONE: ['lone', 'string'],
  POLICIES: ['policies', 'string'],
  READS_STRINGS: ['readsStrings', 'boolean'],
  WIDTH: ['width', 'number'],
}

/**
 * The variables of a module that differ by policy. In the script of a list each policy has its own: to copy them would take 0.2 µs a
 * key, of 3.5, and to call a module as a function more.
 */
const ofPolicy = /\b(?:limit|window|setting|key|amount|detail|denied|write|where|data|ttl|extra)\b/g

/** Reads a script without comments and indentation: every server would keep them, a third of its bytes. */
function bare(name: string): string {
  return readText(`${folder}/${name}.lua`)
    .replace(/^ *-- include (\S+)$/gm, (_line, other: string) => bare(other))
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^--(?! [A-Z]+$)/.test(line))
    .join('\n')
}

function hole(expression: string): string {
  return `\${${expression}}`
}

function quoted(text: string): string {
  return `\`${text.replace(/[\\`]|\$\{/g, '\\$&')}\``
}

/** Gives the variables of a module a suffix, which is an expression of the generated code. */
function suffixed(text: string, suffix: string): string {
  return text.replace(ofPolicy, (name) => `${name}${hole(suffix)}`)
}

function plain(name: string): string {
  return `export const ${camel(name)} = ${quoted(bare(name))}\n`
}

/** A function that fills the holes of a script. */
function template(name: string): string {
  const used = new Map<string, string>()
  const fill = (word: string, mark: string): string => {
    const [field, type] = holes[mark] ?? []
    if (field === undefined || type === undefined) return word
    used.set(field, type)
    return hole(field)
  }
  const text = quoted(bare(name))
    .replace(/^-- EACH\n([\s\S]*?)\n-- END$/gm, (_, block: string) => {
      used.set('modules', 'readonly Module[]')
      const each = suffixed(block, 'suffix')
        .replace(/^-- DECIDE$/m, hole('decide(suffix)'))
        .replace(/\bN\b/g, hole('n'))
      return hole(`each(modules, (n, suffix, decide) => \`${each}\`)`)
    })
    .replace(/(?:^-- )?\b([A-Z]+(?:_[A-Z]+)*)\b/gm, fill)
  const names = [...used.keys()].sort()
  const types = names.map((field) => `readonly ${field}: ${used.get(field)}`)
  return `export const ${camel(name)} = ({ ${names.join(', ')} }: { ${types.join('; ')} }): string => ${text}\n`
}

function namesIn(part: string): string[] {
  const files = filesUnder(`${folder}/${part}`, '.lua').sort()
  return files.map((file) => file.slice(`${folder}/${part}/`.length, -'.lua'.length))
}

/** The modules whose keys hold strings, which one MGET reads. */
function stringModules(): string[] {
  const reads = /^-- include parts\/read-string$/m
  const names = namesIn('usual').filter((name) =>
    reads.test(readText(`${folder}/usual/${name}.lua`)),
  )
  return names.map((name) => `'${name}'`)
}

function table(part: string, write: (text: string) => string): string {
  const rows = namesIn(part).map(
    (name) => `'${name}': ${write(quoted(bare(`${part}/${name}`)))},\n`,
  )
  return `{\n${rows.join('')}}\n`
}

export function generated(): string {
  return [
    '// `npm run build:lua` writes this file from packages/redis/lua.\n',
    '/** A module that decides a key in a usual state. Its variables end in a suffix. */',
    'export type Module = (suffix: string) => string\n',
    "export const suffixOf = (n: number, length: number): string => (length > 1 ? '_' + n : '')\n",
    'const each = (modules: readonly Module[], text: (n: number, suffix: string, decide: Module) => string): string =>',
    "  modules.map((decide, i) => text(i + 1, suffixOf(i + 1, modules.length), decide)).join('\\n')\n",
    ...['deadline', 'grants', 'held-units', 'members', 'write-document'].map(plain),
    ...['prelude', 'decide', 'usual-one', 'usual-call'].map(template),
    `export const algorithms = ${table('algorithms', (text) => text)}`,
    `export const stringModules: ReadonlySet<string> = new Set([${stringModules()}])\n`,
    `export const usual = ${table('usual', (text) => `(s: string): string => ${suffixed(text, 's')}`)}`,
  ].join('\n')
}

function camel(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  writeFileSync(root + generatedFile, generated())
