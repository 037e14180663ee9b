import { parseSync, Visitor } from 'oxc-parser'

export interface FoundImport {
  specifier: string
  line: number
}

/** Every module that a TypeScript source names: imports, re-exports, `import()`, `import('x').Type` and `require()`. */
export function findImports(fileName: string, source: string): FoundImport[] {
  const { program, errors } = parseSync(fileName, source)
  if (errors[0]) throw new Error(`${fileName} does not parse: ${errors[0].message}`)
  const found: FoundImport[] = []
  const add = (node: { type: string; start: number } | null) => {
    if (node === null) return
    found.push({ specifier: literalText(node), line: lineAt(source, node.start) })
  }
  new Visitor({
    ImportDeclaration: (node) => add(node.source),
    ExportNamedDeclaration: (node) => add(node.source),
    ExportAllDeclaration: (node) => add(node.source),
    ImportExpression: (node) => add(node.source),
    TSImportType: (node) => add(node.source),
    TSExternalModuleReference: (node) => add(node.expression),
    CallExpression: (node) => {
      const isRequire = node.callee.type === 'Identifier' && node.callee.name === 'require'
      if (isRequire) add(node.arguments[0] ?? null)
    },
  }).visit(program)
  return found
}

/** A computed specifier cannot be judged, so it is given a text that every rule refuses. */
function literalText(node: { type: string }): string {
  const isText = node.type === 'Literal' && 'value' in node && typeof node.value === 'string'
  return isText ? String(node.value) : '(computed)'
}

function lineAt(source: string, offset: number): number {
  return source.slice(0, offset).split('\n').length
}
