import { join, relative } from 'node:path'
import ts from '@typescript/typescript6'
import { expect, it } from 'vitest'
import { compile, entriesOf } from '../support/option-entries.ts'
import { root } from '../support/workspace.ts'

// What users of the essential packages may rely on. After a change that is meant, run this test with `-u`: the diff shows the change.

const essential = ['core', 'headers', 'redis', 'http', 'express', 'fastify']
const flags =
  ts.TypeFormatFlags.NoTruncation |
  ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope |
  ts.TypeFormatFlags.WriteArrayAsGenericType

it('the public surface of the essential packages is the one that was agreed on', async () => {
  const program = compile(essential)
  const checker = program.getTypeChecker()
  for (const name of essential) {
    const text = entriesOf(name).map((entry) => {
      const source = program.getSourceFile(entry)
      const module = source && checker.getSymbolAtLocation(source)
      const exported = module ? checker.getExportsOfModule(module) : []
      const lines = exported.map((symbol) => described(symbol, checker)).sort()
      expect(lines).not.toEqual([])
      return `# ${relative(join(root, 'packages'), entry)}\n\n${lines.join('\n')}\n`
    })
    await expect(text.join('\n')).toMatchFileSnapshot(`surface/${name}.txt`)
  }
}, 120_000)

function described(alias: ts.Symbol, checker: ts.TypeChecker): string {
  const isAlias = (alias.flags & ts.SymbolFlags.Alias) !== 0
  const symbol = isAlias ? checker.getAliasedSymbol(alias) : alias
  const name = alias.name
  if (symbol.flags & ts.SymbolFlags.Value) {
    const type = checker.getTypeOfSymbol(symbol)
    return `${name}: ${textOf(type)}${members(checker.getDeclaredTypeOfSymbol(symbol))}`
  }
  const type = checker.getDeclaredTypeOfSymbol(symbol)
  return `type ${name}${type.isUnion() ? ` = ${textOf(type, ts.TypeFormatFlags.InTypeAlias)}` : members(type)}`

  function members(owner: ts.Type): string {
    const own = checker.getPropertiesOfType(owner).flatMap((property) => {
      const { declarations = [], name: member } = property
      const isOurs = declarations.some(
        (node) => !node.getSourceFile().fileName.includes('node_modules'),
      )
      if (!isOurs || /^(__)?#/.test(member)) return []
      const optional = property.flags & ts.SymbolFlags.Optional ? '?' : ''
      // TypeScript numbers the names that are symbols anew in each run.
      const shown = member.replace(/^__@(\w+)@\d+$/, '[Symbol.$1]')
      return [`\n    ${shown}${optional}: ${textOf(checker.getTypeOfSymbol(property))}`]
    })
    return own.sort().join('')
  }

  function textOf(type: ts.Type, more = 0): string {
    return checker.typeToString(type, undefined, flags | more).replaceAll(/\s*\n\s*/g, ' ')
  }
}
