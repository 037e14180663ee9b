import { fileURLToPath } from 'node:url'
import {
  Application,
  type DeclarationReflection,
  type ProjectReflection,
  ReflectionKind,
  type TypeDocOptions,
} from 'typedoc'
import type { PluginOptions } from 'typedoc-plugin-markdown'
import { entries } from './entries.ts'

// Writes a page of docs/api for each entry of a package, from the docstrings. Fails where a public symbol has none.

const options: TypeDocOptions & PluginOptions = {
  plugin: ['typedoc-plugin-markdown'],
  name: 'API',
  tsconfig: pathOf('../tsconfig.json'),
  entryPoints: entries.map(({ source }) => pathOf(`../../packages/${source}`)),
  out: pathOf('../api'),
  router: 'module',
  entryFileName: 'index',
  readme: 'none',
  // `npm run check` has done it.
  skipErrorChecking: true,
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  disableSources: true,
  hidePageHeader: true,
  hideBreadcrumbs: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  logLevel: 'Warn',
  validation: { notExported: false, invalidLink: true, notDocumented: false },
}
const app = await Application.bootstrapWithPlugins(options)
const project = await app.convert()
if (project) {
  nameModules(project)
  describeKeys(project)
  app.validate(project)
  for (const symbol of symbolsOf(project)) {
    if (!isDocumented(symbol)) app.logger.error(`${symbol.getFriendlyFullName()} has no docstring`)
  }
  await app.generateOutputs(project)
}
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exitCode = 1

/** Gives each module the name that applications import. */
function nameModules({ children = [] }: ProjectReflection): void {
  for (const module of children) {
    const entry = entries.find(
      ({ source }) => source.replace(/(\/index)?\.ts$/, '') === module.name,
    )
    if (!entry) throw new Error(`no package has the entry ${module.name}`)
    module.name = entry.name
  }
}

/** Each adapter exports the keys of `requestKeys` one by one, without the docstrings of the functions. */
function describeKeys(all: ProjectReflection): void {
  const symbols = symbolsOf(all)
  const keys = symbols.find(({ name }) => name === 'RequestKeys')
  for (const symbol of symbols) {
    const key = keys?.getChildByName([symbol.name])
    if (!key?.isDeclaration() || symbol.kind !== ReflectionKind.Variable) continue
    const functions = [key, ...symbols.filter(({ name }) => name === symbol.name)]
    const comment = functions.flatMap(({ signatures = [] }) => signatures[0]?.comment ?? [])[0]
    if (comment) symbol.comment ??= comment.clone()
  }
}

function symbolsOf({ children = [] }: ProjectReflection): DeclarationReflection[] {
  return children.flatMap((module) => module.children ?? [])
}

function isDocumented({ kind, comment, signatures = [] }: DeclarationReflection): boolean {
  return (
    kind === ReflectionKind.Reference ||
    comment !== undefined ||
    signatures.some((signature) => signature.comment !== undefined)
  )
}

function pathOf(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url))
}
