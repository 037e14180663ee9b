import { parseSync, Visitor } from 'oxc-parser'

type Program = ReturnType<typeof parseSync>['program']
type Statement = Program['body'][number]
/** The part of a name or key in the syntax tree that says what it is called. */
type Key = { readonly type: string; readonly name?: unknown; readonly value?: unknown }

/**
 * What a user can write, call or read, by the declarations of a package: fields and methods of its types and classes, and the classes and
 * constants themselves.
 * @param leaveOut declarations, by name, that hold nothing of that kind
 */
export function declaredNames(
  declarations: string,
  leaveOut: readonly string[],
): ReadonlySet<string> {
  const { program, errors } = parseSync('types.d.ts', declarations)
  if (errors[0]) throw new Error(`the declarations do not parse: ${errors[0].message}`)
  const names = new Set<string>()
  const add = (key: Key) => {
    const name = key.name ?? key.value
    if (typeof name === 'string' && name !== 'constructor') names.add(name)
  }
  const visitor = new Visitor({
    TSPropertySignature: ({ key }) => add(key),
    TSMethodSignature: ({ key }) => add(key),
    MethodDefinition: ({ key, accessibility }) => {
      if (accessibility !== 'private') add(key)
    },
    PropertyDefinition: ({ key, accessibility }) => {
      if (accessibility !== 'private') add(key)
    },
    ClassDeclaration: ({ id }) => {
      if (id) add(id)
    },
    VariableDeclarator: ({ id }) => add(id),
  })
  for (const statement of program.body.flatMap(unwrapped)) {
    if (leaveOut.includes(nameOf(statement))) continue
    visitor.visit({ ...program, body: [statement] })
  }
  return names
}

/** The declarations in a `declare module` or `declare namespace` one by one, so that each can be left out. */
function unwrapped(statement: Statement): readonly Statement[] {
  if (statement.type !== 'TSModuleDeclaration' || !statement.body) return [statement]
  return statement.body.body.flatMap(unwrapped)
}

function nameOf(statement: Statement): string {
  const declaration =
    statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
  if (!declaration) return ''
  if (declaration.type === 'VariableDeclaration') {
    const [first] = declaration.declarations
    return first?.id.type === 'Identifier' ? first.id.name : ''
  }
  return 'id' in declaration && declaration.id?.type === 'Identifier' ? declaration.id.name : ''
}
