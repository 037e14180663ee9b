import './styles/base.css'
import './styles/frame.css'
import './styles/tables.css'
import './styles/forms.css'
import './styles/views.css'
import { render } from 'preact'
import { App } from './app.tsx'

const page = document.getElementById('page')
if (page) render(<App />, page)
