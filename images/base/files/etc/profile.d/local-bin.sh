# Programs that pip and npm install for the user are found first.
PATH="$HOME/.local/bin:$PATH"
